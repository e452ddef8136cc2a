/* nvJPEG in pretence, for tests: its functions that decode a batch, by libjpeg, in a thread, late and out of order.

   PRETEND_NVJPEG_FAILS=N lets the N-th call that decodes fail, PRETEND_NVJPEG_FAILS_FROM=N all from there on,
   PRETEND_NVJPEG_NO_ENGINE=1 the search for an engine.  Images of odd width are refused.  pretend_pending() counts images
   that are still to be written; pretend_write() writes them, and returns how many files had changed since they were
   submitted, or places been written to.  pretend_misused counts states that are destroyed while they decode, that decode
   after a failure without being initialized again, and calls whose images are not in order of sampling and size. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct {
    unsigned char *channel[4];
    size_t pitch[4];
} image;

typedef struct {
    const unsigned char *data;
    size_t length;
    image to;
    uint64_t sum, place;
    struct state *state;
} task;

typedef struct state {
    int size, pending, failed;
} state;

static struct {
    int width, height;
} parsed;
static task tasks[4096];
int pretend_calls, pretend_misused;
/* Threads wait for the engine while its own submits more; who waits while another writes must wait until that is done. */
static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static int count, fancy, initialized, allocated, batches;

static uint64_t sum_of(const unsigned char *p, size_t length)
{
    uint64_t sum = 1469598103934665603u;
    for (size_t i = 0; i < length; i++)
        sum = (sum ^ p[i]) * 1099511628211u;
    return sum;
}

static int decode(const unsigned char *data, size_t length, const image *to, int *width, int *height)
{
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    c.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&c);
    jpeg_mem_src(&c, data, length);
    jpeg_read_header(&c, TRUE);
    *width = (int)c.image_width;
    *height = (int)c.image_height;
    if (to) {
        c.out_color_space = JCS_RGB;
        c.do_fancy_upsampling = fancy;
        jpeg_start_decompress(&c);
        while (c.output_scanline < c.output_height) {
            JSAMPROW row = to->channel[0] + (size_t)c.output_scanline * to->pitch[0];
            jpeg_read_scanlines(&c, &row, 1);
        }
        jpeg_finish_decompress(&c);
    }
    jpeg_destroy_decompress(&c);
    return 0;
}

static int sampling_of(const unsigned char *p)
{
    for (p += 2; p[1] != 0xC0; p += 2 + p[2] * 256 + p[3])
        ;
    return p[11];
}

static int number_of(const char *name)
{
    const char *found = getenv(name);
    return found ? atoi(found) : 0;
}

int nvjpegCreateEx(int backend, void *device, void *pinned, unsigned flags, void **handle)
{
    (void)device, (void)pinned;
    *handle = &count;
    fancy = flags == 32;
    return backend == 3 && (fancy || !flags) ? 0 : 2;
}

int nvjpegDestroy(void *handle)
{
    return handle == &count ? 0 : 2;
}

int nvjpegGetHardwareDecoderInfo(void *handle, unsigned *engines, unsigned *cores)
{
    (void)handle;
    *engines = !number_of("PRETEND_NVJPEG_NO_ENGINE");
    *cores = 5;
    return 0;
}

int nvjpegJpegStateCreate(void *handle, void **state)
{
    (void)handle;
    *state = calloc(1, sizeof(struct state));
    return 0;
}

int nvjpegJpegStateDestroy(void *state)
{
    pretend_misused += ((struct state *)state)->pending > 0;
    free(state);
    return 0;
}

int nvjpegJpegStreamCreate(void *handle, void **stream)
{
    (void)handle;
    *stream = &parsed;
    return 0;
}

int nvjpegJpegStreamDestroy(void *stream)
{
    return stream == &parsed ? 0 : 2;
}

int nvjpegJpegStreamParseHeader(void *handle, const unsigned char *data, size_t length, void *stream)
{
    (void)handle, (void)stream;
    return decode(data, length, NULL, &parsed.width, &parsed.height);
}

int nvjpegDecodeBatchedSupported(void *handle, void *stream, int *refused)
{
    (void)handle, (void)stream;
    *refused = parsed.width % 2;
    return 0;
}

int nvjpegDecodeBatchedPreAllocate(void *handle, void *state, int most, int width, int height, int kind, int format)
{
    (void)handle, (void)state, (void)kind;
    allocated += most > 0 && width > 0 && height > 0 && format == 5;
    return 0;
}

int nvjpegDecodeBatchedInitialize(void *handle, void *state, int size, int threads, int format)
{
    (void)handle;
    initialized++;
    *(struct state *)state = (struct state){size, 0, 0};
    return threads == 1 && format == 5 && size > 0 ? 0 : 2;
}

int nvjpegDecodeBatched(void *handle, void *state, const unsigned char *const *data, const size_t *lengths, image *to,
                        void *stream)
{
    (void)handle, (void)stream;
    int width, height, from = number_of("PRETEND_NVJPEG_FAILS_FROM");
    struct state *s = state;
    pretend_misused += s->failed;
    if (++pretend_calls == number_of("PRETEND_NVJPEG_FAILS") || (from && pretend_calls >= from)) {
        s->failed = 1;
        return 6;
    }
    pthread_mutex_lock(&busy);
    batches++;
    long before = 0, kind = 0;
    for (int i = 0; i < s->size; i++) {
        task *t = tasks + count++;
        *t = (task){data[i], lengths[i], to[i], sum_of(data[i], lengths[i]), 0, s};
        s->pending++;
        decode(data[i], lengths[i], NULL, &width, &height);
        long now = sampling_of(data[i]), area = (long)width * height;
        pretend_misused += i && (now < kind || (now == kind && area > before));
        kind = now;
        before = area;
        for (int y = 0; y < height; y++) /* what nobody may read yet */
            memset(to[i].channel[0] + (size_t)y * to[i].pitch[0], 0xA5, 3 * (size_t)width);
        t->place = sum_of(to[i].channel[0], to[i].pitch[0] * (size_t)height);
    }
    pthread_mutex_unlock(&busy);
    return 0;
}

int pretend_pending(void)
{
    return count;
}

int pretend_batches(void)
{
    return batches;
}

int pretend_allocated(void)
{
    return allocated;
}

/* The last ones first: engines do not keep to an order. */
int pretend_write(void)
{
    int wrong = 0, width, height;
    pthread_mutex_lock(&busy);
    while (count) {
        task *t = tasks + --count;
        t->state->pending--;
        if (sum_of(t->data, t->length) != t->sum) {
            wrong++; /* somebody has used the memory of the file again */
            continue;
        }
        decode(t->data, t->length, NULL, &width, &height);
        wrong += sum_of(t->to.channel[0], t->to.pitch[0] * (size_t)height) != t->place;
        decode(t->data, t->length, &t->to, &width, &height);
    }
    pthread_mutex_unlock(&busy);
    return wrong;
}
