#ifndef CANDADO_CSYSTEMD_SHIM_H
#define CANDADO_CSYSTEMD_SHIM_H

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#endif
