/* Candado: protected files for programs in any language. */
#ifndef CANDADO_H
#define CANDADO_H

/* The version of this interface: "MAJOR.MINOR.PATCH". Static; never NULL. */
const char *candado_version(void);

#endif
