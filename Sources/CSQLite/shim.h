#ifndef CANDADO_CSQLITE_SHIM_H
#define CANDADO_CSQLITE_SHIM_H

#include <sqlite3.h>

/* A cast macro, which Swift does not import: SQLite copies what it is given. */
static inline int candado_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

static inline int candado_bind_text(sqlite3_stmt *statement, int index, const char *bytes, int count) {
    return sqlite3_bind_text(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/* A variadic function, which Swift does not import. */
static inline int candado_database_option(sqlite3 *database, int option, int value) {
    int result = 0;
    return sqlite3_db_config(database, option, value, &result);
}

#endif
