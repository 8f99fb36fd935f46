/*
 * Candado: protected files for programs in any language.
 *
 * A file belongs to a protection class, and the class says in which lock state it can be read. The class keys are held by
 * the user's agent; this library asks it, and never has them.
 *
 * Conventions, for every function unless it says otherwise:
 *
 *   Results    -1 (or NULL) means failure; errno then says what kind, candado_error() says it in a sentence with what to do
 *              next. After success errno has no meaning.
 *   Arguments  paths are bytes that end with a NUL; they need not be UTF-8. Sizes and offsets are in bytes. A NULL pointer
 *              where a value is needed is EFAULT, an empty path ENOENT, a size above SSIZE_MAX, a negative offset, an unknown
 *              class or an unknown flag EINVAL. A buffer may be NULL where its size is 0.
 *   Handles    are numbers, not pointers: one that is closed, made up or another process's is EBADF, never a crash.
 *   Threads    every function may be called by any thread at any time.
 *   Signals    no function may be called in a signal handler. The library installs none, and its threads take none.
 *   Fork       once a process has used a function that is not marked "Needs no key", every such function fails in its forked
 *              children with ESTALE, at once, and harms nothing of the parent's; those that are so marked go on working. A
 *              child that wants more calls exec. A process that forks first and uses the library then, in the children, has
 *              no such limit. Descriptors are close-on-exec.
 *
 * errno, where a system call did not set it:
 *
 *   ENOKEY        the class is locked now; or the file belongs to another keybag; or there is no keybag
 *                 (candado_error_kind() tells these apart)
 *   EBADMSG       damaged: record, header or content is not what was written
 *   ENODATA       the file is not protected, or its key record is nowhere to be found
 *   EOPNOTSUPP    a format from the future; a kind of file or a file system that cannot be protected
 *   ECONNREFUSED  the agent does not run, or cannot be talked to
 *   EBUSY         somebody else is working on the file, or the agent is at one of its limits
 *   EEXIST        the name is taken
 *   EKEYREJECTED, EAGAIN, EPERM, ECANCELED, ENOMEM, EIO
 *                 as candado_error_text() says
 *   EBADF         no open handle of this kind, or one that may only read
 *   ESTALE        a forked child uses what is its parent's
 */
#ifndef CANDADO_H
#define CANDADO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ------------------------------------------------------------------------------------------------------- */

/* The version of this header, by the rules of semver.org. A program that was built with 1.x runs with every later 1.y. */
#define CANDADO_VERSION "1.0.0"
#define CANDADO_VERSION_MAJOR 1
#define CANDADO_VERSION_MINOR 0
#define CANDADO_VERSION_PATCH 0

/* The version of the library that is loaded: "MAJOR.MINOR.PATCH". Static; never NULL. Needs no key. */
const char *candado_version(void);

/* ---- Errors -------------------------------------------------------------------------------------------------------- */

/* What kind of failure it was, where errno alone does not tell. New ones may come. */
enum candado_error_kind {
    CANDADO_ERROR_NONE = 0,                /* nothing failed in this thread yet */
    CANDADO_ERROR_LOCKED = 1,              /* ENOKEY: the class cannot be read in the present lock state */
    CANDADO_ERROR_NOT_PROTECTED = 2,       /* ENODATA: a plain file */
    CANDADO_ERROR_RECORD_MISSING = 3,      /* ENODATA: protected, but its key record is gone */
    CANDADO_ERROR_DAMAGED = 4,             /* EBADMSG */
    CANDADO_ERROR_FOREIGN_KEYBAG = 5,      /* ENOKEY: the file belongs to another keybag */
    CANDADO_ERROR_NEEDS_NEWER_VERSION = 6, /* EOPNOTSUPP */
    CANDADO_ERROR_UNSUPPORTED = 7,         /* EOPNOTSUPP: a kind of file or a file system */
    CANDADO_ERROR_NO_KEYBAG = 8,           /* ENOKEY: the home holds none */
    CANDADO_ERROR_AGENT_NOT_REACHABLE = 9, /* ECONNREFUSED */
    CANDADO_ERROR_BUSY = 10,               /* EBUSY */
    CANDADO_ERROR_INVALID_ARGUMENT = 11,   /* EINVAL, EFAULT, EBADF, ERANGE: the caller's doing */
    CANDADO_ERROR_FORKED = 12,             /* ESTALE */
    CANDADO_ERROR_SYSTEM = 13,             /* a system call failed: errno is its own */
    CANDADO_ERROR_OTHER = 14               /* see candado_error() */
};

/*
 * Describes the last failure in the calling thread: what went wrong with which file, then what to do next where there is
 * something to do. English, one line, at most 1,023 bytes, UTF-8; never a secret. Later successes leave it.
 *
 * Copies at most size - 1 bytes and a NUL into buffer (NULL only with size 0) and returns the length of the whole
 * sentence without the NUL, as snprintf does; 0 when nothing has failed yet. Never fails, leaves errno alone. Needs no key.
 */
size_t candado_error(char *buffer, size_t size);

/* The kind of the last failure in the calling thread, one of enum candado_error_kind. Leaves errno alone. Needs no key. */
int candado_error_kind(void);

/*
 * What an errno means when a function of this library set it: a sentence in English, lower case, without a full stop.
 * Static; never NULL, whatever the number. Leaves errno alone. Needs no key.
 */
const char *candado_error_text(int error_number);

/* ---- Protection classes -------------------------------------------------------------------------------------------- */

/* A protection class. The numbers are also what Apple's interfaces use. */
enum candado_class {
    CANDADO_CLASS_DEFAULT = 0,              /* as argument: whichever counts there; as result: no class */
    CANDADO_CLASS_COMPLETE = 1,             /* A: readable only while unlocked */
    CANDADO_CLASS_COMPLETE_UNLESS_OPEN = 2, /* B: while unlocked, or through a handle that was open at the lock */
    CANDADO_CLASS_UNTIL_FIRST_UNLOCK = 3,   /* C: from the first unlock until the agent ends */
    CANDADO_CLASS_NONE = 4                  /* D: always, on this machine */
};

/* The name of a class on the command line, such as "complete". Static. NULL with EINVAL for another number. Needs no key. */
const char *candado_class_name(int protection_class);

/* The class of such a name, or -1 with EINVAL. Needs no key. */
int candado_class_named(const char *name);

/* Flags. Each function names those that it takes. */
/* Follow a symbolic link at the end of the path. Without it a link is EOPNOTSUPP; with it, links in a circle are ELOOP. */
#define CANDADO_FOLLOW 1u
#define CANDADO_REPLACE 2u   /* replace another key record that is there */
#define CANDADO_EXCLUSIVE 4u /* fail with EEXIST when the name is taken */
#define CANDADO_REKEY 8u     /* give the file a new key */

/*
 * The class that a file claims, or that a directory gives to new files; CANDADO_CLASS_DEFAULT (0) for a plain file and for a
 * directory without one. Without keys a class is a claim, not a proof.
 *
 * Flags: CANDADO_FOLLOW. Errors: EBADMSG, ENODATA (a container without any record), EOPNOTSUPP (also for symbolic links,
 * devices, sockets and pipes), and those of open(2). Needs no key.
 */
int candado_class_of_path(const char *path, unsigned flags);

/* The same for an open descriptor of a file or directory; its offset stays. EBADF when it is not open. Needs no key. */
int candado_class_of_descriptor(int descriptor);

/* ---- Key records --------------------------------------------------------------------------------------------------- */

/* What kind of wrap a record holds. */
enum candado_record_kind {
    CANDADO_RECORD_DIRECTORY = 0, /* none: the class that a directory gives to new files */
    CANDADO_RECORD_SYMMETRIC = 1, /* classes A, C and D: 40 bytes, the wrapped file key */
    CANDADO_RECORD_ASYMMETRIC = 2 /* class B: 104 bytes, a public key (32), the wrapped file key (40) and a MAC (32) */
};

/* In candado_record.flags: the file key was once wrapped for a weaker class, so that old copies of it still open the file. */
#define CANDADO_RECORD_KEY_WAS_WEAKER 1u

/* Bytes of the longest record. */
#define CANDADO_RECORD_SIZE 124

/* The extended attribute that holds a file's or a directory's record. */
#define CANDADO_RECORD_ATTRIBUTE "user.candado"

/*
 * A key record, taken apart: the class of a file and its wrapped key (docs/formats/key-record.md). It holds nothing secret:
 * without the class key it opens nothing. 132 bytes; this layout is part of the interface.
 */
struct candado_record {
    uint8_t version;          /* 1 */
    uint8_t kind;             /* enum candado_record_kind */
    uint8_t protection_class; /* enum candado_class, 1 to 4: a claim, until the record is opened */
    uint8_t letter;           /* 'A' to 'D', the class again */
    uint8_t flags;            /* CANDADO_RECORD_KEY_WAS_WEAKER */
    uint8_t generation;       /* of the class key, 0 to 255 */
    uint8_t reserved[2];      /* 0 */
    uint32_t wrap_size;       /* bytes of wrap that count: 0, 40 or 104 */
    uint8_t keybag[16];       /* the keybag that holds the class key: a UUID */
    uint8_t wrap[104];        /* the wrap; the rest is 0 */
};

/*
 * Takes the bytes of a record apart. Strict: what is accepted gives the same bytes with candado_record_encode().
 *
 * Returns 0. Errors: EBADMSG (no record), EOPNOTSUPP (a record from the future). Needs no key.
 */
int candado_record_parse(const void *bytes, size_t size, struct candado_record *record);

/*
 * Puts the bytes of a record together: 20, 60 or 124.
 *
 * Returns how many. Errors: ERANGE (the buffer is too small), EINVAL (the fields make no record). Needs no key.
 */
ssize_t candado_record_encode(const struct candado_record *record, void *buffer, size_t size);

/*
 * Describes a record in one line of English, such as "class A (complete), generation 0, keybag 01234567-89ab-...". At most
 * 255 bytes.
 *
 * Copies at most size - 1 bytes and a NUL and returns the whole length, as snprintf does. Errors: EINVAL. Needs no key.
 */
ssize_t candado_record_describe(const struct candado_record *record, char *buffer, size_t size);

/*
 * The bytes of the record that counts: of the attribute, else of the copy in the container's header. A directory's is 20
 * bytes long.
 *
 * Returns how many, at most CANDADO_RECORD_SIZE; 0 for a plain file and for a directory without one. Flags: CANDADO_FOLLOW.
 * Errors: ERANGE (the buffer is too small), and those of candado_class_of_path(). Needs no key.
 */
ssize_t candado_record_of_path(const char *path, unsigned flags, void *buffer, size_t size);

/* The same for an open descriptor. Needs no key. */
ssize_t candado_record_of_descriptor(int descriptor, void *buffer, size_t size);

/*
 * Stores a record on a file or directory, as a backup tool does that has copied the bytes of a container: the two together
 * are the protected file, and neither can be read without the other's help. The bytes must be a record, and a directory's for
 * a directory. Durable when it returns; the file's content stays.
 *
 * Returns 0. Flags: CANDADO_FOLLOW, CANDADO_REPLACE. Errors: EEXIST (another record is there, and CANDADO_REPLACE is not
 * given), EBADMSG, EOPNOTSUPP, EINVAL (a file's record for a directory, or a directory's for a file), and those of
 * fsetxattr(2). Needs no key.
 */
int candado_set_record_of_path(const char *path, unsigned flags, const void *bytes, size_t size);

/* The same for an open descriptor, which need not be open for writing. Flags: CANDADO_REPLACE. Needs no key. */
int candado_set_record_of_descriptor(int descriptor, unsigned flags, const void *bytes, size_t size);

/* ---- The agent ----------------------------------------------------------------------------------------------------- */

/*
 * Names the home whose agent is asked from now on; open handles keep theirs, and so do calls that are under way. A relative
 * path begins at the directory in which the process stands at this moment. NULL is what counts at the beginning: the home
 * that the environment names when it is connected to ($CANDADO_HOME, else $XDG_DATA_HOME/candado). Does not look whether
 * there is a home, and waits for nobody.
 *
 * Returns 0. Errors: ENOENT (an empty path; or a relative one, and the directory of the process is gone), ESTALE.
 */
int candado_use_home(const char *path);

/*
 * Connects to the agent now, or finds that the agent still lives to which it is connected. Other functions do so by
 * themselves when they have to; and a connection that was lost is replaced with the next request.
 *
 * An agent that does not answer is given up after about 10 seconds. Threads that wait for it at the same time share that
 * answer: who comes while another tries waits for the end of that and of one more try, at most about 20 seconds, however many
 * wait. (The agent refuses nobody by silence: its process was stopped, or the machine is out of its depth.)
 *
 * Returns 0. Errors: ENOKEY (the home has no keybag, or the environment names no home), ECONNREFUSED, ESTALE.
 */
int candado_connect_agent(void);

/* The lock state. */
enum candado_lock_state {
    CANDADO_BEFORE_FIRST_UNLOCK = 0, /* class D is readable */
    CANDADO_UNLOCKED = 1,            /* all are */
    CANDADO_LOCKED = 2               /* C and D are */
};

/*
 * The lock state: one look into memory once there is a connection. An agent that has ended is a locked one.
 *
 * Returns one of enum candado_lock_state. Errors: those of candado_connect_agent().
 */
int candado_lock_state(void);

/* 1 when a fresh open of a file of this class would succeed now, else 0. Errors: those of candado_connect_agent(). */
int candado_can_read(int protection_class);

/* ---- Lock events --------------------------------------------------------------------------------------------------- */

/* A subscription to lock events. Above 0; 64 bits, so that none comes twice. */
typedef int64_t candado_events;

/* What happened. New ones may come: pass over what you do not know. */
enum candado_event_kind {
    CANDADO_EVENT_STATE = 1,     /* the lock state when the subscription began: always the first */
    CANDADO_EVENT_WILL_LOCK = 2, /* keys of class A and B go in grace_milliseconds; 0: at once, nobody is waited for */
    CANDADO_EVENT_DID_LOCK = 3,  /* they are gone */
    CANDADO_EVENT_DID_UNLOCK = 4, /* all keys are usable */
    CANDADO_EVENT_LOST = 5       /* you were too slow and events were dropped; state is what holds after them */
};

/* Why a lock was asked for. New ones may come. */
enum candado_lock_reason {
    CANDADO_REASON_UNKNOWN = 0, /* none was told; also when the agent ended */
    CANDADO_REASON_COMMAND = 1,
    CANDADO_REASON_SCREEN_LOCK = 2,
    CANDADO_REASON_IDLE = 3,
    CANDADO_REASON_SLEEP = 4,
    CANDADO_REASON_SESSION_END = 5,
    CANDADO_REASON_TERMINATION = 6
};

/* One event. 24 bytes; this layout is part of the interface. */
struct candado_event {
    int32_t kind;               /* enum candado_event_kind */
    int32_t state;              /* enum candado_lock_state: what holds after this event */
    int32_t reason;             /* enum candado_lock_reason, of a lock */
    int32_t reserved;           /* 0 */
    int64_t grace_milliseconds; /* of CANDADO_EVENT_WILL_LOCK */
};

/*
 * Subscribes to lock events: none from now on is missed. The library hears them in a thread of its own, which no slow reader
 * holds up: up to 64 wait here, then the oldest are dropped, and a CANDADO_EVENT_LOST stands in their place.
 *
 * The subscription outlives the agent. One that ends while unlocked gives CANDADO_EVENT_DID_LOCK; a new one is found within
 * about a second of its start.
 *
 * Returns the subscription. Errors: those of candado_connect_agent(), EMFILE.
 */
candado_events candado_events_open(void);

/*
 * A descriptor for poll(2), epoll and the like, readable as long as candado_events_next() has something to tell. It belongs
 * to the subscription: neither read it nor close it. Errors: EBADF, ESTALE.
 */
int candado_events_descriptor(candado_events events);

/*
 * Takes the next event, without waiting.
 *
 * Returns 1, or 0 when there is none now. Errors: EBADF, ESTALE, EPIPE (no more will come: this process could have no further
 * descriptor or thread).
 */
int candado_events_next(candado_events events, struct candado_event *event);

/* Ends the subscription and closes its descriptor. Returns 0. Errors: EBADF, ESTALE. */
int candado_events_close(candado_events events);

/* ---- Open files ---------------------------------------------------------------------------------------------------- */

/* A handle on a protected file. Above 0; 64 bits, so that none comes twice. */
typedef int64_t candado_file;

/* What a handle is for. */
enum candado_access {
    CANDADO_READ = 1,   /* an existing protected file, for reading */
    CANDADO_UPDATE = 2, /* an existing protected file, for reading and writing */
    CANDADO_CREATE = 3  /* a new file, for reading and writing: EEXIST when the name is taken */
};

/*
 * Opens a protected file, or makes an empty one, durable at once and with permissions 0600. protection_class is that of a new
 * file, or CANDADO_CLASS_DEFAULT: the directory's, else the keybag's default; for an existing file it must be
 * CANDADO_CLASS_DEFAULT. A symbolic link at the end of the path is never followed.
 *
 * Returns a handle. Errors: ENOKEY by the rules of the class, ENODATA (a plain file), EBADMSG, EOPNOTSUPP, EEXIST, EBUSY,
 * those of open(2) and of candado_connect_agent().
 */
candado_file candado_open(const char *path, int access, int protection_class);

/*
 * Makes durable what was written, and closes the handle, in every lock state. Waits for calls on it that are under way; when
 * it returns the handle is gone, with whatever result. Returns 0. Errors: EBADF, ESTALE, and those of fsync(2): then nobody
 * knows what is on the disk.
 */
int candado_close(candado_file file);

/*
 * Reads at an offset, straight into the buffer. Class A is checked at every call: after a lock each is ENOKEY until the next
 * unlock. Calls on one handle run one after the other; handles are independent of each other.
 *
 * Returns how many bytes: fewer than size only at the end of the file, 0 behind it. When it fails, what is
 * in the buffer is of no use, but nothing in it is unauthentic. Errors: EBADF, ESTALE, ENOKEY, EBADMSG, EIO.
 */
ssize_t candado_pread(candado_file file, void *buffer, size_t size, int64_t offset);

/*
 * Writes at an offset; a gap before it becomes zeros, which are written too: files are dense. Up to 1 MiB is one step: after
 * a crash all of it is there or none.
 *
 * Returns size: all is written, or the call fails. Errors: EBADF (also of a handle for reading), ESTALE, ENOKEY, EBADMSG,
 * EFBIG, ENOSPC, EIO.
 */
ssize_t candado_pwrite(candado_file file, const void *bytes, size_t size, int64_t offset);

/*
 * Writes behind the present end, whoever else appends at the same time. Returns the offset at which the bytes lie. Errors
 * as for candado_pwrite().
 */
int64_t candado_append(candado_file file, const void *bytes, size_t size);

/* Bytes of content. Errors: EBADF, ESTALE, ENOKEY, EBADMSG. */
int64_t candado_length(candado_file file);

/* Cuts the content, or lengthens it with zeros, which are written. Returns 0. Errors as for candado_pwrite(). */
int candado_truncate(candado_file file, int64_t length);

/*
 * Makes durable what was written through any handle, in every lock state. After a failure nobody knows what is on the disk,
 * and this handle only reads. Returns 0. Errors: EBADF, ESTALE, and those of fsync(2).
 */
int candado_fsync(candado_file file);

/* The class under whose rules the handle works now. Errors: EBADF, ESTALE, ENOKEY, EBADMSG. */
int candado_class_of_file(candado_file file);

/* ---- Whole files --------------------------------------------------------------------------------------------------- */

/*
 * Reads a whole protected file into memory that candado_free() gives back. *size is its length; one byte more is there, a
 * NUL. On failure *bytes is NULL and *size is 0.
 *
 * Returns 0. Errors: those of candado_open() and candado_pread(), ENOMEM.
 */
int candado_read_file(const char *path, void **bytes, size_t *size);

/*
 * The same into the caller's buffer. Returns the file's length. Errors also: ERANGE when it does not fit. What is in the
 * buffer after a failure is of no use.
 */
ssize_t candado_read_file_into(const char *path, void *buffer, size_t size);

/* Zeroes and frees what candado_read_file() gave. NULL is allowed. Leaves errno alone. Needs no key. */
void candado_free(void *bytes);

/*
 * Writes a whole file atomically and durably: after a crash it is the old one or the new one. The class is the one given;
 * for CANDADO_CLASS_DEFAULT that of the file it replaces, else the directory's, else the keybag's default. Owner,
 * permissions and attributes of a replaced file are kept; a new file has permissions 0600. Content that is locked, damaged
 * or another keybag's is never replaced.
 *
 * Returns 0. Flags: CANDADO_EXCLUSIVE. Errors: those of candado_open(), ENOSPC, EFBIG.
 */
int candado_write_file(const char *path, const void *bytes, size_t size, int protection_class, unsigned flags);

/*
 * Changes the class of a protected file, by wrapping its key anew or with CANDADO_REKEY by giving it a new key; or the class
 * that a directory gives to new files, which CANDADO_CLASS_DEFAULT takes off.
 *
 * Returns 0. Flags: CANDADO_REKEY. Errors: those of candado_open(); EINVAL for CANDADO_CLASS_DEFAULT with a file.
 */
int candado_set_class(const char *path, int protection_class, unsigned flags);

#ifdef __cplusplus
}
#endif

#endif
