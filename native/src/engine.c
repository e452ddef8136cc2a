/* Decode JPEGs with nvJPEG's engine; nvJPEG is loaded at run time.  See native.h. */
#include "native.h"

#include <stdlib.h>

#ifdef _WIN32
tdn_engine *tdn_engine_open(const char *file, int fancy, int states, int *code)
{
    (void)file, (void)fancy, (void)states;
    *code = -1;
    return NULL;
}

int tdn_engine_decode(tdn_engine *engine, int state, tdn_file *images, int count, int most, int height, int width,
                      void *stream)
{
    (void)engine, (void)state, (void)images, (void)count, (void)most, (void)height, (void)width, (void)stream;
    return -1;
}

void tdn_engine_close(tdn_engine *engine)
{
    (void)engine;
}
#else
#include <dlfcn.h>
#include <string.h>

/* Constants of nvjpeg.h, equal in CUDA 12 and 13. */
enum { HARDWARE = 3, RGBI = 5, FANCY = 32, SUBSAMPLING_444 = 0 };
typedef struct {
    unsigned char *channel[4];
    size_t pitch[4];
} image;

typedef struct {
    int (*create)(int, void *, void *, unsigned, void **);
    int (*destroy)(void *);
    int (*engines)(void *, unsigned *, unsigned *);
    int (*create_state)(void *, void **);
    int (*destroy_state)(void *);
    int (*create_stream)(void *, void **);
    int (*destroy_stream)(void *);
    int (*parse)(void *, const unsigned char *, size_t, void *);
    int (*supports)(void *, void *, int *);
    int (*allocate)(void *, void *, int, int, int, int, int);
    int (*initialize)(void *, void *, int, int, int);
    int (*decode)(void *, void *, const unsigned char *const *, const size_t *, image *, void *);
} functions;

static const char *const NAMES[] = {
    "nvjpegCreateEx", "nvjpegDestroy", "nvjpegGetHardwareDecoderInfo", "nvjpegJpegStateCreate", "nvjpegJpegStateDestroy",
    "nvjpegJpegStreamCreate", "nvjpegJpegStreamDestroy", "nvjpegJpegStreamParseHeader", "nvjpegDecodeBatchedSupported",
    "nvjpegDecodeBatchedPreAllocate", "nvjpegDecodeBatchedInitialize", "nvjpegDecodeBatched",
};

enum { MOST_STATES = 8 };

struct tdn_engine {
    functions f;
    void *handle, *parsed;
    int states;
    struct {
        void *state;
        int prepared, count;
    } of[MOST_STATES];
};

void tdn_engine_close(tdn_engine *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->states; i++)
        if (e->of[i].state)
            e->f.destroy_state(e->of[i].state);
    if (e->parsed)
        e->f.destroy_stream(e->parsed);
    if (e->handle)
        e->f.destroy(e->handle);
    free(e);
}

/* Load nvJPEG.  It is never unloaded, because it may contain a CUDA runtime, which must exist until the process ends. */
static int load(tdn_engine *e, const char *file)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return -1;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        void *found = dlsym(library, NAMES[i]);
        if (!found)
            return -2;
        memcpy((char *)&e->f + i * sizeof found, &found, sizeof found);
    }
    return 0;
}

static int begin(tdn_engine *e, int fancy, int states)
{
    unsigned engines = 0, cores = 0;
    int code = e->f.create(HARDWARE, NULL, NULL, fancy ? FANCY : 0, &e->handle);
    if (!code)
        code = e->f.engines(e->handle, &engines, &cores);
    if (!code && !engines)
        return -3;
    if (!code)
        code = e->f.create_stream(e->handle, &e->parsed);
    for (e->states = 0; !code && e->states < states; e->states++)
        code = e->f.create_state(e->handle, &e->of[e->states].state);
    return code;
}

tdn_engine *tdn_engine_open(const char *file, int fancy, int states, int *code)
{
    tdn_engine *e = states > 0 && states <= MOST_STATES ? calloc(1, sizeof *e) : NULL;
    *code = e ? load(e, file) : -1;
    if (!*code)
        *code = begin(e, fancy, states);
    if (*code) {
        tdn_engine_close(e);
        return NULL;
    }
    return e;
}

static int accepts(tdn_engine *e, const tdn_file *s)
{
    int refused = 1;
    return !e->f.parse(e->handle, s->data, s->length, e->parsed) && !e->f.supports(e->handle, e->parsed, &refused)
        && !refused;
}

/* Sort by sampling, and then from large to small: the engine's cores get similar images, and finish together. */
static int compare(const void *a, const void *b)
{
    const tdn_file *x = *(const tdn_file *const *)a, *y = *(const tdn_file *const *)b;
    int64_t size = (int64_t)y->header.height * y->header.width - (int64_t)x->header.height * x->header.width;
    if (x->sampling != y->sampling)
        return x->sampling - y->sampling;
    return size ? (size > 0) - (size < 0) : (x > y) - (x < y);
}

/* Submit the images whose code is TDN_DONE. */
static int submit(tdn_engine *e, int k, tdn_file *images, int count, int chosen, int most, int height, int width,
                  void *stream)
{
    const tdn_file **order = malloc((size_t)chosen * sizeof *order);
    const unsigned char **data = malloc((size_t)chosen * sizeof *data);
    size_t *lengths = malloc((size_t)chosen * sizeof *lengths);
    image *places = calloc((size_t)chosen, sizeof *places);
    void *state = e->of[k].state;
    int n = 0, code = order && data && lengths && places ? 0 : -1;
    for (int i = 0; i < count && !code; i++)
        if (images[i].code == TDN_DONE)
            order[n++] = images + i;
    if (!code)
        qsort(order, (size_t)n, sizeof *order, compare);
    for (int i = 0; i < n && !code; i++) {
        data[i] = order[i]->data;
        lengths[i] = order[i]->length;
        places[i].channel[0] = order[i]->out;
        places[i].pitch[0] = 3 * (size_t)order[i]->header.width;
    }
    most = most > chosen ? most : chosen;
    if (!code && e->of[k].prepared < most) {
        code = e->f.allocate(e->handle, state, most, width, height, SUBSAMPLING_444, RGBI);
        e->of[k].prepared = code ? 0 : most;
    }
    if (!code && e->of[k].count != chosen) {
        code = e->f.initialize(e->handle, state, chosen, 1, RGBI);
        e->of[k].count = code ? 0 : chosen;
    }
    if (!code)
        code = e->f.decode(e->handle, state, data, lengths, places, stream);
    if (code)
        e->of[k].count = 0; /* initialize the state again before the next batch, which resets it */
    free(order);
    free(data);
    free(lengths);
    free(places);
    return code;
}

int tdn_engine_decode(tdn_engine *e, int state, tdn_file *images, int count, int most, int height, int width, void *stream)
{
    int chosen = 0;
    if (!e || state < 0 || state >= e->states)
        return -1;
    for (int i = 0; i < count; i++) {
        images[i].code = accepts(e, images + i) ? TDN_DONE : TDN_UNSUPPORTED;
        chosen += images[i].code == TDN_DONE;
    }
    int code = chosen ? submit(e, state, images, count, chosen, most, height, width, stream) : 0;
    for (int i = 0; i < count && code; i++)
        images[i].code = TDN_DAMAGED;
    return code;
}
#endif
