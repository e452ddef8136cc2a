/* Loaded in front of the interpreter (LD_PRELOAD): books CPU time of traced threads as with or without the GIL.
 *
 * The interpreter and extensions let the GIL go by PyEval_SaveThread and take it back by PyEval_RestoreThread; both are
 * caught here. Some take it back by other ways (torch by PyEval_AcquireThread): then the next release comes while the
 * GIL seems to be free, and what lies before it counts as free, too. Releases that the interpreter is forced to at the
 * end of a switch interval are not seen; with one thread there are none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    void *code;     /* of the line that let the GIL go */
    int64_t line;
    int64_t held;   /* nanoseconds of CPU before the release */
    int64_t free;   /* nanoseconds of CPU until the GIL came back */
} Event;

static Event *events;
static int64_t count, size;
static __thread int traced, is_free;
static __thread int64_t since;
static void *(*save)(void);
static void (*restore)(void *);
static void *(*frame)(void);
static int (*line_of)(void *);
static void *(*code_of)(void *);

static int64_t cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void find(void) {
    if (restore) return;
    save = dlsym(RTLD_NEXT, "PyEval_SaveThread");
    frame = dlsym(RTLD_DEFAULT, "PyEval_GetFrame");
    line_of = dlsym(RTLD_DEFAULT, "PyFrame_GetLineNumber");
    code_of = dlsym(RTLD_DEFAULT, "PyFrame_GetCode");
    restore = dlsym(RTLD_NEXT, "PyEval_RestoreThread");
}

static Event *next(void) { return traced && count < size ? &events[count++] : NULL; }

void *PyEval_SaveThread(void) {
    find();
    if (traced) {
        int64_t now = cpu();
        if (is_free && count) {
            events[count - 1].free += now - since;
        } else {
            Event *e = next();
            if (e) {
                void *f = frame();
                e->held = now - since;
                e->free = 0;
                e->line = f ? line_of(f) : 0;
                e->code = f ? code_of(f) : NULL;
            }
        }
        is_free = 1;
    }
    void *state = save();
    if (traced) since = cpu();
    return state;
}

void PyEval_RestoreThread(void *state) {
    find();
    if (traced && is_free && count) events[count - 1].free += cpu() - since;
    restore(state);
    if (traced) { is_free = 0; since = cpu(); }
}

/* The functions below are called with the GIL held (ctypes.PyDLL). */
void gil_clock_room(int64_t n) { events = calloc(n, sizeof(Event)); size = n; count = 0; }
int64_t gil_clock_begin(void) { traced = 1; is_free = 0; since = cpu(); return count; }
int64_t gil_clock_end(void) {
    Event *e = next();
    if (e) { e->held = cpu() - since; e->free = 0; e->line = 0; e->code = NULL; }
    traced = 0;
    return count;
}
Event *gil_clock_events(void) { return events; }
