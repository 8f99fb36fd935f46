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

/* Why reading or writing failed. SQLite remembers it of each file, and of the database only sometimes. */
static inline int candado_last_errno(sqlite3 *database) {
    int number = sqlite3_system_errno(database);
    sqlite3_file *log = 0;
    if (number != 0) return number;
    if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log != 0 &&
        log->pMethods != 0 &&
        log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number) == SQLITE_OK && number != 0) {
        return number;
    }
    number = 0;
    sqlite3_file_control(database, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
    return number;
}

#endif
