/* Decode, crop, resize and convert images: see native.h.

   A line is a row or a column of an image: a row along the vertical axis, a column along the horizontal axis. */
#include "native.h"
#include "pillow.h"
#include "vectors.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#include <jerror.h>
#include <jpeglib.h>

#if defined(TDN_VECTORS) && defined(__SSE2__)
#include <immintrin.h>

static inline __m128 load_4_bytes(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128(four);
    return _mm_cvtepi32_ps(_mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero));
}
#elif defined(TDN_VECTORS)
#include <arm_neon.h>

static inline float32x4_t load_4_bytes(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, 4);
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four)))));
}
#endif

#define NAME(name) name##_base
#define TARGET
#ifdef TDN_VECTORS
#define LANES 4
#define FLOATS floats4
#define LOAD_BYTES(p) ((floats4)load_4_bytes(p))
#endif
#include "kernels.h"

#if TDN_LEVELS > 1
#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#define LANES 8
#define FLOATS __m256
#define LOAD_BYTES(p) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p))))
#include "kernels.h"
#define NAME(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define LANES 16
#define FLOATS __m512
#define LOAD_BYTES(p) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p))))
#include "kernels.h"
#endif

typedef struct {
    void (*sum_rows)(const uint8_t *const *, const float *, int, float *, int);
    void (*sum_sums)(const float *const *, const float *, int, float *, int);
    void (*sum_pixels)(const float *, const int32_t *, const float *, int, int, float *, size_t, size_t);
    void (*round_sums)(const float *, const float *, const float *, int, uint8_t *);
    void (*scale_levels)(const uint8_t *, int, float, float, float *);
} kernels;

static const kernels LEVELS[TDN_LEVELS] = {
#define KERNELS(level) {sum_rows##level, sum_sums##level, sum_pixels##level, round_sums##level, scale_levels##level}
    KERNELS(_base),
#if TDN_LEVELS > 1
    KERNELS(_avx2),
    KERNELS(_avx512),
#endif
};

int tdn_abi(void)
{
    return TDN_ABI;
}

int tdn_libjpeg(void)
{
    return LIBJPEG_TURBO_VERSION_NUMBER;
}

/* ---------------------------------------------------------------- headers */

static uint32_t number(const uint8_t *p, int bytes, int little)
{
    uint32_t found = 0;
    for (int i = 0; i < bytes; i++)
        found = found << 8 | p[little ? bytes - 1 - i : i];
    return found;
}

/* Return the orientation in an EXIF block, which is a small TIFF file; 1 if the block is damaged. */
static int exif_orientation(const uint8_t *tiff, uint64_t length)
{
    if (length < 8)
        return 1;
    int little = !memcmp(tiff, "II*\0", 4);
    if (!little && memcmp(tiff, "MM\0*", 4))
        return 1;
    uint64_t at = number(tiff + 4, 4, little);
    if (at + 2 > length)
        return 1;
    uint64_t count = number(tiff + at, 2, little);
    at += 2;
    if (at + 12 * count > length)
        return 1;
    for (; count; count--, at += 12)
        if (number(tiff + at, 2, little) == 0x0112) {
            int value = (int)number(tiff + at + 8, 2, little);
            return value >= 1 && value <= 8 ? value : 1;
        }
    return 1;
}

typedef struct {
    tdn_header shown;
    int marker; /* the frame's marker: C0 to C2 */
    int light;  /* 1 if there is an Adobe block: four channels are then inverted, and three may be RGB */
    uint64_t at; /* position of the frame's marker */
} frame_header;

/* Find the frame and the first EXIF block, in the same way as torchdali's Python code for headers. */
static int read_header(const uint8_t *data, uint64_t length, frame_header *found)
{
    if (length < 16 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF)
        return TDN_UNSUPPORTED;
    uint64_t at = 2, end = length - 9, exif = 0;
    found->light = 0;
    while (at < end) {
        int marker = data[at + 1];
        if (data[at] != 0xFF || marker == 0xFF) {
            at++;
            continue;
        }
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
            found->marker = marker;
            found->at = at;
            found->shown.height = (int32_t)number(data + at + 5, 2, 0);
            found->shown.width = (int32_t)number(data + at + 7, 2, 0);
            found->shown.channels = data[at + 9];
            found->shown.orientation = 1;
            if (marker > 0xC2 || data[at + 4] != 8 || !found->shown.height || !found->shown.width)
                return TDN_UNSUPPORTED;
            if (exif) {
                uint64_t rest = length - exif, block = number(data + exif - 8, 2, 0);
                block = block < 8 ? 0 : block - 8;
                found->shown.orientation = exif_orientation(data + exif, block < rest ? block : rest);
            }
            return TDN_DONE;
        }
        if (marker == 0xE1) {
            if (!exif && at + 10 <= length && !memcmp(data + at + 4, "Exif\0\0", 6))
                exif = at + 10;
        } else if (marker == 0xEE) {
            found->light |= !memcmp(data + at + 4, "Adobe", 5);
        } else if (marker == 0xDA || marker == 0xD9) {
            return TDN_UNSUPPORTED;
        } else if (marker <= 0x01 || (marker >= 0xD0 && marker <= 0xD8)) {
            at += 2;
            continue;
        }
        at += 2 + number(data + at + 2, 2, 0);
    }
    return TDN_UNSUPPORTED;
}

int tdn_peek(const uint8_t *data, uint64_t length, tdn_header *found)
{
    frame_header frame;
    int code = data && found ? read_header(data, length, &frame) : TDN_INVALID;
    if (code == TDN_DONE)
        *found = frame.shown;
    return code;
}

/* ---------------------------------------------------------------- lots */

enum { TAIL = 256 }; /* number of bytes at the end of a file; they encode pixels */

static int32_t lot_of(const uint8_t *data, uint64_t length)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (uint64_t i = length > TAIL ? length - TAIL : 0; i < length; i++)
        hash = (hash ^ data[i]) * 0x100000001B3u;
    hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ hash >> 27) * 0x94D049BB133111EBu;
    return (int32_t)(hash >> 40);
}

/* Return whether exactly one scan, the end of the image and the end of the file follow the segments from `at` on. */
static int has_one_scan(const uint8_t *data, uint64_t length, uint64_t at)
{
    int scan = 0;
    while (!scan) {
        if (at > length || length - at < 4 || data[at] != 0xFF)
            return 0;
        int marker = data[at + 1];
        if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
            return 0;
        scan = marker == 0xDA;
        uint64_t size = 2 + number(data + at + 2, 2, 0);
        if (size > length - at)
            return 0;
        at += size;
    }
    const uint8_t *p = data + at, *end = data + length;
    while (end - p >= 2 && (p = memchr(p, 0xFF, (size_t)(end - p - 1)))) {
        int marker = p[1];
        if (marker == 0xD9)
            return p + 2 == end;
        if (marker && marker != 0xFF && (marker < 0xD0 || marker > 0xD7))
            return 0;
        p += marker == 0xFF ? 1 : 2;
    }
    return 0;
}

/* Return the luma samples per chroma sample, as 16 * horizontal + vertical; 0 if engines don't decode the file. */
static int sampling_of(const tdn_file *f, const frame_header *frame)
{
    const uint8_t *p = f->data + frame->at;
    uint32_t channels = (uint32_t)frame->shown.channels, size = 8 + 3 * channels;
    if (frame->marker != 0xC0 || frame->light || (channels != 1 && channels != 3) || f->length - frame->at < 2 + size
        || number(p + 2, 2, 0) != size)
        return 0;
    int first = p[11], across = first >> 4, down = first & 15;
    if (channels == 1)
        return 0x11;
    int known = (across == 1 || across == 2) && (down == 1 || down == 2);
    return known && p[14] == 0x11 && p[17] == 0x11 ? first : 0;
}

/* Read the header; with a recipe, also compute the lot. */
static void examine(const tdn_recipe *r, uint64_t max_pixels, tdn_file *f)
{
    frame_header frame;
    f->lot = -1;
    f->sampling = 0;
    f->code = f->data ? read_header(f->data, f->length, &frame) : TDN_INVALID;
    if (f->code != TDN_DONE)
        return;
    const tdn_header *h = &frame.shown;
    f->header = *h;
    if (h->channels != 1 && h->channels != 3 && h->channels != 4) {
        f->code = TDN_UNSUPPORTED;
        return;
    }
    f->sampling = sampling_of(f, &frame);
    if (!r || !f->sampling || (r->upright && h->orientation != 1))
        return;
    uint64_t pixels = (uint64_t)h->height * (uint64_t)h->width, values = pixels * (uint64_t)h->channels;
    if (pixels <= max_pixels && (values <= r->free_values || values <= f->length * r->per_byte)
        && has_one_scan(f->data, f->length, frame.at + 10 + 3 * (uint64_t)h->channels))
        f->lot = lot_of(f->data, f->length);
}

void tdn_draw(const tdn_recipe *recipe, uint64_t max_pixels, tdn_file *files, int count)
{
    for (int i = 0; i < count; i++)
        examine(recipe, max_pixels, files + i);
}

/* ---------------------------------------------------------------- files */

#ifdef _WIN32
static int read_file(const char *name, uint8_t *memory, uint64_t room, uint64_t *length)
{
    (void)name, (void)memory, (void)room, (void)length;
    return TDN_UNSUPPORTED;
}
#else
static int read_file(const char *name, uint8_t *memory, uint64_t room, uint64_t *length)
{
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = TDN_DONE;
    struct stat about;
    if (file < 0)
        return TDN_UNSUPPORTED;
    if (fstat(file, &about) || !S_ISREG(about.st_mode))
        code = TDN_UNSUPPORTED;
    else if ((uint64_t)about.st_size > room)
        code = TDN_TOO_LARGE;
    uint64_t size = code == TDN_DONE ? (uint64_t)about.st_size : 0, done = 0;
    while (done < size) {
        ssize_t count = read(file, memory + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            code = TDN_UNSUPPORTED; /* also if the file was truncated after fstat */
            break;
        }
        done += (uint64_t)count;
    }
    close(file);
    *length = done;
    return code;
}
#endif

int tdn_read(const char *names, int count, uint8_t *memory, uint64_t room, tdn_file *found, const tdn_recipe *recipe,
             uint64_t max_pixels)
{
    uint64_t used = 0;
    int failed = 0;
    for (int i = 0; i < count; i++, names += strlen(names) + 1) {
        tdn_file *f = found + i;
        memset(f, 0, sizeof *f);
        f->data = memory + used;
        f->lot = -1;
        f->code = read_file(names, memory + used, room - used, &f->length);
        if (f->code == TDN_DONE) {
            f->whole = 1;
            examine(recipe, max_pixels, f);
            uint64_t taken = (f->length + 63) / 64 * 64;
            used = taken < room - used ? used + taken : room;
        }
        failed += f->code != TDN_DONE;
    }
    return failed;
}

/* ---------------------------------------------------------------- filters */

/* The weighted sums along an axis: line i of the output is the sum of `taps` input lines from first[i] on.  Lines before
   `begin`, and from `end` on, have the values of the edge. */
typedef struct {
    int count, taps, begin, end;
    int32_t *first;
    float *weight;
    int least, most; /* range of input lines in the sums */
    int low, high;   /* part of this range that is inside of the input */
} filter;

#define MOST_TAPS (1 << 24)
#define KNOTS 32 /* values per unit of distance in DALI's tables of filters */

typedef struct {
    double low, high;
    int size, start, extent, first, last, mirrored, filter, antialias, drop, leading;
} axis;

static int radius(const axis *a)
{
    return a->filter == TDN_CUBIC ? 2 : 1;
}

/* Compute the values of a filter, with a zero at each end. */
static void make_table(const axis *a, float *table, int count)
{
    for (int k = 1; k < count - 1; k++) {
        double t = fabs((double)(k - 1) / KNOTS - radius(a));
        double curve = t < 1 ? (1.5 * t - 2.5) * t * t + 1 : ((2.5 - 0.5 * t) * t - 4) * t + 2;
        table[k] = (float)(a->filter == TDN_CUBIC ? curve : 1 - t);
    }
    table[0] = table[count - 1] = 0;
}

/* Return a filter's radius in input pixels, at most DALI's limit. */
static double reach_of(const axis *a)
{
    double wide = fabs((a->high - a->low) / a->size);
    return fmin(radius(a) * (a->antialias && wide > 1 ? wide : 1), 4096);
}

/* Return the radius as DALI computes it, to the last bit, and the number of table values per pixel. */
static float stretched(const axis *a, float *density)
{
    float knots = (float)(KNOTS * radius(a));
    *density = knots / (float)reach_of(a);
    return knots / *density;
}

static int pixels_seen(const axis *a)
{
    float density;
    return a->filter == TDN_NEAREST ? 1 : (int)ceilf(2 * stretched(a, &density));
}

/* Return the line from which a pass counts positions, as in DALI; the last bit depends on this choice. */
static int origin(const axis *a, float reach)
{
    double least = (a->low < a->high ? a->low : a->high) - a->first;
    int from = a->leading ? 0 : (int)floor(least - reach);
    return a->filter != TDN_NEAREST && from < 0 ? 0 : from;
}

/* Return the first position in the sum of a line, counted from `from`. */
static float position(const axis *a, int line, int from, float reach)
{
    float step = ((float)(a->high - a->first) - (float)(a->low - a->first)) / (float)a->size;
    float begin = (float)((float)(a->low - a->first) - (double)from) + (0.5f * step - 0.5f - reach);
    return begin + (float)line * step;
}

static void make_nearest(const axis *a, int inner, filter *f)
{
    /* Rounding decides which pixel is nearest, so this uses float32 and DALI's order of operations. */
    float step = (float)((a->high - a->low) / a->size);
    int from = origin(a, 0) + a->first;
    float low = (float)(a->low - from), at = low + 0.5f * step;
    int highest = a->last - 1;
    for (int i = 0; i < a->start + a->extent; i++) {
        if (inner)
            at = ((float)i + 0.5f) * step + low;
        else if (i)
            at += step;
        if (i < a->start)
            continue;
        int pixel = (int)floorf(at) + from, place = i - a->start;
        pixel = pixel < a->first ? a->first : pixel > highest ? highest : pixel;
        place = a->mirrored ? a->extent - 1 - place : place;
        f->first[place] = pixel;
        f->weight[place] = 1;
    }
}

/* Compute the weights of all lines in float32 and in DALI's order, like kernels/resample/weights.py. */
static void make_lines(const axis *a, filter *f)
{
    float table[4 * KNOTS + 3], density, reach = stretched(a, &density);
    int values = 2 * KNOTS * radius(a) + 3, from = origin(a, reach);
    make_table(a, table, values);
    for (int i = 0; i < a->extent; i++) {
        float at = position(a, a->start + i, from, reach), sum = 0;
        int place = a->mirrored ? a->extent - 1 - i : i, begin = (int)ceilf(at), first = begin + from + a->first;
        float *weight = f->weight + (size_t)place * (size_t)f->taps;
        for (int k = 0; k < f->taps; k++) {
            float knot = ((float)(begin + k) - at) * density, whole = floorf(knot);
            int left = (int)whole + 1;
            left = left < 0 ? 0 : left > values - 2 ? values - 2 : left;
            weight[k] = table[left] + (knot - whole) * (table[left + 1] - table[left]);
            if (whole >= (float)(values - 2) || (a->drop && (first + k < a->first || first + k >= a->last)))
                weight[k] = 0;
            sum += weight[k];
        }
        for (int k = 0; k < f->taps; k++)
            weight[k] = sum != 0 ? weight[k] / sum : 0;
        /* If all pixels are beyond an edge, their distance from the edge does not matter. */
        first = first < a->first - f->taps ? a->first - f->taps : first;
        f->first[place] = first > a->last ? a->last : first;
    }
}

static int within(int i, int low, int high)
{
    return i < low ? low : i > high ? high : i;
}

/* Compute the sums of an axis, and return a result code.  The caller must free `f` even after a failure. */
static int make_filter(const axis *a, int inner, filter *f)
{
    if (!((2 * reach_of(a) + 1) * a->extent <= MOST_TAPS))
        return TDN_TOO_LARGE;
    f->count = a->extent;
    f->taps = pixels_seen(a);
    f->begin = a->first;
    f->end = a->last;
    f->first = malloc((size_t)a->extent * sizeof *f->first);
    f->weight = malloc((size_t)a->extent * (size_t)f->taps * sizeof *f->weight);
    if (!f->first || !f->weight)
        return TDN_NO_MEMORY;
    if (a->filter == TDN_NEAREST)
        make_nearest(a, inner, f);
    else
        make_lines(a, f);
    int one = f->first[0], other = f->first[f->count - 1];
    int least = one < other ? one : other, most = (one < other ? other : one) + f->taps;
    f->low = within(least, f->begin, f->end - 1);
    f->high = within(most, f->low + 1, f->end);
    f->least = least < f->low ? least : f->low;
    f->most = most > f->high ? most : f->high;
    return TDN_DONE;
}

static int is_identity(const axis *a)
{
    return a->filter != TDN_NEAREST && a->low == a->first && a->high == a->last && a->size == a->last - a->first;
}

/* Return the axis that is resampled first: the cheaper order by DALI's estimate, like kernels/resample/weights.py. */
static int leading(const axis a[2])
{
    double rows = 3 + pixels_seen(a), columns = 3 + 1.4 * pixels_seen(a + 1), last = (double)a[0].size * a[1].size;
    double rows_first = a[0].size * fabs(a[1].high - a[1].low) * rows + last * columns;
    double columns_first = fabs(a[0].high - a[0].low) * a[1].size * columns + last * rows;
    return columns_first < rows_first;
}

/* Describe both axes of a sample. */
static int make_axes(const tdn_recipe *r, const tdn_sample *s, const int lengths[2], axis axes[2])
{
    for (int i = 0; i < 2; i++) {
        axis *a = axes + i;
        double low = s->low[i], high = s->high[i];
        if (!(fabs(low) < 1e8 && fabs(high) < 1e8) || s->size[i] < 1 || s->size[i] > MOST_TAPS || s->start[i] < 0
            || s->extent[i] < 1 || s->extent[i] > s->size[i] - s->start[i] || s->first[i] < 0
            || s->last[i] <= s->first[i] || s->last[i] > lengths[i])
            return TDN_INVALID;
        if (fabs(high - low) < 1e-3)
            return TDN_UNSUPPORTED;
        int shrinks = fabs(high - low) > s->size[i];
        *a = (axis){low, high, s->size[i], s->start[i], s->extent[i], s->first[i], s->last[i],
                    (s->mirror & (i == TDN_ROWS ? TDN_UPSIDE_DOWN : TDN_MIRROR)) != 0, shrinks ? r->shrinking : r->growing, r->antialias != 0,
                    r->outside == 1, 0};
    }
    axes[leading(axes)].leading = 1;
    return TDN_DONE;
}

/* ---------------------------------------------------------------- writing */

static int is_plain(const tdn_recipe *r)
{
    return !r->table && !r->affine && !r->planar && r->channels == 3;
}

#define WRITE(type, value) \
    for (int i = 0; i < width; i++) \
        ((type *)out)[to + (size_t)i * along] = value;

/* Write a row of levels; the three channels are `channel` bytes apart. */
static void write_row(const tdn_recipe *r, const kernels *k, const uint8_t *level, size_t channel, int row, int height,
                      int width, void *out)
{
    size_t plane = (size_t)height * (size_t)width, at = (size_t)row * (size_t)width;
    size_t along = r->planar ? 1 : (size_t)r->channels;
    const void *table = r->table;
    for (int c = 0; c < r->channels; c++, level += channel) {
        size_t to = r->planar ? at + (size_t)c * plane : along * at + (size_t)c;
        if (r->affine && r->planar)
            k->scale_levels(level, width, r->scale[c], r->shift[c], (float *)out + to);
        else if (!table)
            WRITE(uint8_t, level[i])
        else if (r->item == 1)
            WRITE(uint8_t, ((const uint8_t *)table)[256 * c + level[i]])
        else if (r->item == 2)
            WRITE(uint16_t, ((const uint16_t *)table)[256 * c + level[i]])
        else
            WRITE(uint32_t, ((const uint32_t *)table)[256 * c + level[i]])
    }
}

/* Copy a window without resampling it. */
static void write_window(const tdn_recipe *r, const kernels *k, const tdn_sample *s, const tdn_image *from, uint8_t *line)
{
    const uint8_t *row = from->pixels + (size_t)(s->first[0] + s->start[0] - from->top) * from->stride
                       + 3 * (size_t)(s->first[1] + s->start[1] - from->left);
    int width = s->extent[1], mirror = s->mirror & TDN_MIRROR;
    ptrdiff_t next = (ptrdiff_t)from->stride;
    if (s->mirror & TDN_UPSIDE_DOWN) {
        row += (ptrdiff_t)(s->extent[0] - 1) * next;
        next = -next;
    }
    for (int i = 0; i < s->extent[0]; i++, row += next) {
        uint8_t *bytes = (uint8_t *)s->out + 3 * (size_t)i * (size_t)width;
        if (is_plain(r) && !mirror) {
            memcpy(bytes, row, 3 * (size_t)width);
            continue;
        }
        uint8_t *to = is_plain(r) ? bytes : line;
        size_t channel = is_plain(r) ? 1 : (size_t)width, step = is_plain(r) ? 3 : 1;
        for (int j = 0; j < width; j++, to += step) {
            const uint8_t *p = row + 3 * (size_t)(mirror ? width - 1 - j : j);
            to[0] = p[0];
            to[channel] = p[1];
            to[2 * channel] = p[2];
        }
        if (!is_plain(r))
            write_row(r, k, line, channel, i, s->extent[0], width, s->out);
    }
}

/* The memory in which a sample is resampled. */
typedef struct {
    float *row;                 /* a row of the image, with repeated edges */
    float *ring, *sums;         /* rows after the first pass, and a row after both passes */
    float *add, *take;          /* for each value of a row: numbers that make it round */
    const void **lines;         /* the rows in the sum of an output row */
    uint8_t *levels;
} workspace;

static int sees_inside(const axis *a, int line)
{
    float density, begin = ceilf(position(a, line, 0, stretched(a, &density)));
    return begin >= 0 && begin + (float)pixels_seen(a) <= (float)(a->last - a->first);
}

/* Choose the rounding of each value, like kernels/resample/exact.py: DALI rounds halves to even in vectors, else up. */
static void make_rounding(const axis axes[2], size_t channel, size_t step, workspace *m)
{
    const axis *a = axes + 1;
    int low = 0, high = axes[axes[0].leading].filter == TDN_NEAREST ? 0 : a->size;
    if (axes[0].leading) { /* along rows: blocks of 16 pixels, from the first pixel on whose filter is inside the image */
        while (low < high && !sees_inside(a, low))
            low++;
        while (high > low && !sees_inside(a, high - 1))
            high--;
        high = 3 * (low + (high - low) / 16 * 16);
        low *= 3;
    } else { /* along columns: blocks of 16 values */
        high = 3 * high / 16 * 16;
    }
    for (int i = 0; i < 3 * a->extent; i++) {
        int place = i / 3, at = 3 * (a->start + (a->mirrored ? a->extent - 1 - place : place)) + i % 3;
        size_t to = (size_t)place * step + (size_t)(i % 3) * channel;
        int even = at >= low && at < high;
        m->add[to] = even ? 12582912.0f : 0.5f; /* 1.5 * 2**23: at this size, floats are integers, rounded to even */
        m->take[to] = even ? 12582912.0f : 0;
    }
}

/* Compute the weighted sum of n rows, and then the weighted sums of its pixels. */
static void sum_both(const kernels *k, const filter *columns, const float *weight, int n, workspace *m, float *sums,
                     size_t channel, size_t step)
{
    float *low = m->row + 3 * (columns->low - columns->least);
    float *high = low + 3 * (columns->high - columns->low), *end = m->row + 3 * (columns->most - columns->least);
    k->sum_rows((const uint8_t *const *)m->lines, weight, n, low, (int)(high - low));
    for (float *p = low - 1; p >= m->row; p--)
        p[0] = p[3];
    for (; high < end; high++)
        high[0] = high[-3];
    k->sum_pixels(m->row, columns->first, columns->weight, columns->taps, columns->count, sums, channel, step);
}

static void resample(const tdn_recipe *r, const kernels *k, const tdn_sample *s, const tdn_image *from, const filter *f,
                     int rows_first, size_t channel, size_t step, workspace *m)
{
    const filter *rows = f, *columns = f + 1;
    const float whole = 1;
    int values = 3 * columns->count, held = rows->high - rows->low < rows->taps ? rows->high - rows->low : rows->taps;
    int next = rows->low, turned = rows->first[0] > rows->first[rows->count - 1];
    const uint8_t *base = from->pixels + 3 * (ptrdiff_t)(columns->low - from->left);
    for (int j = 0; j < rows->count; j++) {
        int i = turned ? rows->count - 1 - j : j, first = rows->first[i];
        const float *weight = rows->weight + (size_t)i * (size_t)rows->taps;
        int need = within(first, rows->begin, rows->end - 1), last = within(first + rows->taps - 1, need, rows->end - 1);
        for (next = next < need ? need : next; !rows_first && next <= last; next++) {
            m->lines[0] = base + (size_t)(next - from->top) * from->stride;
            sum_both(k, columns, &whole, 1, m, m->ring + (size_t)(next % held) * (size_t)(values + 1), channel, step);
        }
        for (int t = 0; t < rows->taps; t++) {
            int row = within(first + t, rows->begin, rows->end - 1);
            m->lines[t] = rows_first ? (const void *)(base + (size_t)(row - from->top) * from->stride)
                                     : (const void *)(m->ring + (size_t)(row % held) * (size_t)(values + 1));
        }
        if (rows_first)
            sum_both(k, columns, weight, rows->taps, m, m->sums, channel, step);
        else
            k->sum_sums((const float *const *)m->lines, weight, rows->taps, m->sums, values);
        uint8_t *to = is_plain(r) ? (uint8_t *)s->out + (size_t)i * (size_t)values : m->levels;
        k->round_sums(m->sums, m->add, m->take, values, to);
        if (!is_plain(r))
            write_row(r, k, m->levels, channel, i, rows->count, columns->count, s->out);
    }
}

/* ---------------------------------------------------------------- decoding */

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf jump;
    int code;
} error_manager;

static void fail(j_common_ptr c)
{
    error_manager *e = (error_manager *)c->err;
    e->code = e->base.msg_code == JERR_OUT_OF_MEMORY ? TDN_NO_MEMORY : TDN_DAMAGED;
    longjmp(e->jump, 1);
}

static void warn(j_common_ptr c, int level)
{
    if (level < 0)
        fail(c);
}

static void say_nothing(j_common_ptr c)
{
    (void)c;
}

#include "entropy.h"

typedef struct {
    struct jpeg_progress_mgr base;
    int max_scans;
} progress_manager;

static void count_scans(j_common_ptr c)
{
    if (((j_decompress_ptr)c)->input_scan_number > ((progress_manager *)c->progress)->max_scans)
        fail(c);
}

typedef struct {
    struct jpeg_decompress_struct c;
    error_manager errors;
    progress_manager progress;
    uint8_t *pixels;
    uint8_t *turned;
    uint8_t *into; /* the caller's memory for a whole image, which must not be freed; or NULL */
} decoder;

/* A window of an image. */
typedef struct {
    int top, left, height, width;
} window;

static int usual_sampling(const struct jpeg_decompress_struct *c)
{
    const jpeg_component_info *p = c->comp_info;
    int h = p->h_samp_factor, v = p->v_samp_factor;
    for (int i = 1; i < c->num_components; i++)
        if (h % p[i].h_samp_factor || v % p[i].v_samp_factor)
            return 0;
    return h != 3 && v != 3 && (c->num_components > 1 || h * v == 1);
}

/* Read a row of four channels, and convert it to RGB: color * black / 255, rounded down. */
static int read_inks(j_decompress_ptr c, uint8_t *row, int light, uint8_t *pixels, int columns)
{
    int turn = light ? 0 : 255;
    if (!jpeg_read_scanlines(c, &row, 1))
        return 0;
    for (int i = 0; i < columns; i++, row += 4)
        for (int k = 0; k < 3; k++)
            *pixels++ = (uint8_t)((row[k] ^ turn) * (row[3] ^ turn) / 255);
    return 1;
}

/* Return whether no scan is missing.  Otherwise libjpeg smooths the image, and a window differs from the whole image. */
static int all_scans(const struct jpeg_decompress_struct *c)
{
    if (!c->progressive_mode || !c->coef_bits)
        return 1;
    for (int i = 0; i < c->num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (c->coef_bits[i][k] != 0)
                return 0;
    return 1;
}

/* Number of pixels around a window that are also decoded, because chroma is interpolated from them.  Without
   interpolation, libjpeg needs them too: it doesn't support windows with fewer than two chroma samples per row. */
#define MARGIN 4

/* Decode at least a window.  The caller must free d->pixels even after a failure. */
static int decode_window(const tdn_recipe *r, const tdn_sample *s, const frame_header *frame, const window *w,
                         decoder *d, tdn_image *found)
{
    struct jpeg_decompress_struct *c = &d->c;
    c->err = jpeg_std_error(&d->errors.base);
    d->errors.base.error_exit = fail;
    d->errors.base.emit_message = warn;
    d->errors.base.output_message = say_nothing;
    d->errors.code = TDN_DAMAGED;
    memset(&d->progress, 0, sizeof d->progress);
    d->progress.base.progress_monitor = count_scans;
    d->progress.max_scans = r->max_scans;
    if (setjmp(d->errors.jump)) {
        jpeg_destroy_decompress(c);
        return d->errors.code;
    }
    jpeg_create_decompress(c);
    c->progress = &d->progress.base;
    jpeg_mem_src(c, s->data, (unsigned long)s->length);
    jpeg_read_header(c, TRUE);
    int bad = c->image_width != (JDIMENSION)frame->shown.width || c->image_height != (JDIMENSION)frame->shown.height
           || c->num_components != frame->shown.channels || !usual_sampling(c) || c->arith_code
           || (c->jpeg_color_space != JCS_YCbCr && c->jpeg_color_space != JCS_GRAYSCALE
               && c->jpeg_color_space != JCS_RGB && c->num_components != 4);
    if (bad) {
        jpeg_destroy_decompress(c);
        return TDN_UNSUPPORTED;
    }
    int inks = c->num_components == 4;
    uint64_t values = (inks ? 4 : 3) * (uint64_t)c->image_width * c->image_height;
    uint64_t memory = 8 * values + (64 << 20);
    c->mem->max_memory_to_use = memory > LONG_MAX ? LONG_MAX : (long)memory;
    c->out_color_space = inks ? JCS_CMYK : JCS_RGB;
    c->scale_num = 1;
    c->scale_denom = (unsigned)s->scale;
    c->dct_method = r->fast && frame->shown.orientation == 1 ? JDCT_FASTEST : JDCT_ISLOW;
    c->do_fancy_upsampling = r->fancy || inks;
    jpeg_start_decompress(c);
    if (!all_scans(c)) {
        jpeg_destroy_decompress(c);
        return TDN_UNSUPPORTED;
    }
    int height = (int)c->output_height, width = (int)c->output_width, bottom = w->top + w->height;
    int right = w->left + w->width, top = 0, left = 0, columns = width;
    int to_the_end = bottom + MARGIN >= height;
    if (to_the_end) /* also check the rest of the file, as for a whole image */
        bottom = height;
    JDIMENSION begin = w->left > MARGIN ? (JDIMENSION)(w->left - MARGIN) : 0;
    JDIMENSION cut = (JDIMENSION)(right < width - MARGIN ? right + MARGIN : width) - begin;
    if (cut < (JDIMENSION)width) {
        jpeg_crop_scanline(c, &begin, &cut);
        left = (int)begin;
        columns = (int)cut;
    }
    entropy *scan = take_over(c, columns < width || w->top > MARGIN, left, columns);
    if (w->top > MARGIN) {
        int skip = w->top - MARGIN;
        if (jpeg_skip_scanlines(c, (JDIMENSION)skip) != (JDIMENSION)skip)
            fail((j_common_ptr)c);
        top = skip;
    }
    size_t stride = 3 * (size_t)columns;
    /* For a part of the columns, the decoder may write a few more columns than requested. */
    uint8_t *pixels = d->into;
    if (!pixels)
        pixels = d->pixels = malloc(stride * (size_t)(bottom - top) + 3 * 64);
    if (!pixels) {
        jpeg_destroy_decompress(c);
        return TDN_NO_MEMORY;
    }
    uint8_t *row = inks ? c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, 4 * ((size_t)columns + 64)) : NULL;
    while ((int)c->output_scanline < bottom) {
        JSAMPROW rows[16];
        int at = (int)c->output_scanline - top;
        if (inks && !read_inks(c, row, frame->light, pixels + (size_t)at * stride, columns))
            fail((j_common_ptr)c);
        if (inks)
            continue;
        int left_over = bottom - top - at, n = left_over < 16 ? left_over : 16;
        for (int i = 0; i < n; i++)
            rows[i] = pixels + (size_t)(at + i) * stride;
        if (!jpeg_read_scanlines(c, rows, (JDIMENSION)n))
            fail((j_common_ptr)c);
    }
    if (to_the_end) {
        if (scan && !hand_back(c, scan))
            fail((j_common_ptr)c);
        jpeg_finish_decompress(c);
    }
    jpeg_destroy_decompress(c);
    *found = (tdn_image){pixels, stride, top, left};
    return TDN_DONE;
}

/* Return the window of the stored image for a window of the upright image. */
static window stored_window(const window *w, const int upright[2], int orientation)
{
    window found = *w;
    if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8)
        found.top = upright[0] - w->top - w->height;
    if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7)
        found.left = upright[1] - w->left - w->width;
    return orientation > 4 ? (window){found.left, found.top, found.width, found.height} : found;
}

/* Turn and mirror the pixels of a window so that they are upright. */
static int turn(const window *w, const window *stored, int orientation, decoder *d, tdn_image *pixels)
{
    uint8_t *to = d->turned = malloc(3 * (size_t)w->height * (size_t)w->width);
    if (!to)
        return TDN_NO_MEMORY;
    const uint8_t *base = pixels->pixels + (size_t)(stored->top - pixels->top) * pixels->stride
                        + 3 * (size_t)(stored->left - pixels->left);
    int flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
    int flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
    for (int y = 0; y < w->height; y++)
        for (int x = 0; x < w->width; x++, to += 3) {
            size_t sy = (size_t)(flip_y ? w->height - 1 - y : y), sx = (size_t)(flip_x ? w->width - 1 - x : x);
            memcpy(to, base + (orientation > 4 ? sx * pixels->stride + 3 * sy : sy * pixels->stride + 3 * sx), 3);
        }
    *pixels = (tdn_image){d->turned, 3 * (size_t)w->width, w->top, w->left};
    return TDN_DONE;
}

/* Decode a window of the upright image.  The caller must free d->pixels and d->turned. */
static int decode_upright(const tdn_recipe *r, const tdn_sample *s, const frame_header *frame, const window *w,
                          decoder *d, tdn_image *found)
{
    int orientation = frame->shown.orientation;
    int turned = orientation > 4;
    int upright[2] = {turned ? frame->shown.width : frame->shown.height,
                      turned ? frame->shown.height : frame->shown.width};
    window stored = stored_window(w, upright, orientation);
    int code = decode_window(r, s, frame, &stored, d, found);
    if (code == TDN_DONE && orientation != 1)
        code = turn(w, &stored, orientation, d, found);
    return code;
}

/* ---------------------------------------------------------------- samples */

static int valid_recipe(const tdn_recipe *r)
{
    int item = r->item == 1 || r->item == 2 || r->item == 4;
    int filters = r->shrinking >= TDN_NEAREST && r->shrinking <= TDN_CUBIC && r->growing >= TDN_NEAREST
               && r->growing <= TDN_CUBIC;
    return r->abi == TDN_ABI && item && filters && (r->channels == 1 || r->channels == 3) && (r->table || r->item == 1 || r->affine)
        && (!r->affine || (r->item == 4 && (r->planar || r->table)));
}

static void release(filter *f)
{
    for (int i = 0; i < 2; i++) {
        free(f[i].first);
        free(f[i].weight);
    }
}

/* Decode the window that a Pillow filter reads (or, without a frame, use the sample's pixels), resize and write it. */
static int make_as_pillow(const tdn_recipe *r, const tdn_sample *s, const frame_header *frame)
{
    int height = s->extent[0], width = s->extent[1], plain = is_plain(r);
    tdn_image pixels = {s->data, 3 * (size_t)s->width, 0, 0};
    decoder d;
    d.pixels = d.turned = d.into = NULL;
    tdn_resizer z;
    int code = tdn_begin_resize(s, r->level, &z);
    uint8_t *levels = malloc(3 * (size_t)width);
    if (code == TDN_DONE && !levels)
        code = TDN_NO_MEMORY;
    window w = {z.rows.low, z.columns.low, z.rows.high - z.rows.low, z.columns.high - z.columns.low};
    if (code == TDN_DONE && frame)
        code = decode_upright(r, s, frame, &w, &d, &pixels);
    if (code == TDN_DONE)
        code = tdn_resize(&z, &pixels, plain ? 1 : (size_t)width, plain ? 3 : 1);
    for (int i = 0; i < height && code == TDN_DONE; i++) {
        tdn_resize_row(&z, i, plain ? (uint8_t *)s->out + 3 * (size_t)i * (size_t)width : levels);
        if (!plain)
            write_row(r, LEVELS + tdn_level(r->level), levels, (size_t)width, i, height, width, s->out);
    }
    tdn_end_resize(&z);
    free(levels);
    free(d.pixels);
    free(d.turned);
    return code;
}

/* Decode a window of an image (or, without a frame, use the sample's pixels), resample and write it. */
static int make(const tdn_recipe *r, const tdn_sample *s, const int lengths[2], const frame_header *frame)
{
    tdn_image pixels = {s->data, 3 * (size_t)s->width, 0, 0};
    const kernels *k = LEVELS + tdn_level(r->level);
    decoder d;
    d.pixels = d.turned = d.into = NULL;
    filter f[2];
    memset(f, 0, sizeof f);
    axis axes[2];
    int code = make_axes(r, s, lengths, axes);
    if (code != TDN_DONE)
        return code;
    int plain = is_identity(axes) && is_identity(axes + 1);
    if (s->filter && !plain)
        return make_as_pillow(r, s, frame);
    window w = {s->first[0] + s->start[0], s->first[1] + s->start[1], s->extent[0], s->extent[1]};
    if (plain) {
        int whole = w.height == lengths[0] && w.width == lengths[1];
        if (frame && is_plain(r) && !s->mirror && frame->shown.orientation == 1 && whole)
            d.into = s->out;
    } else {
        for (int i = 0; i < 2 && code == TDN_DONE; i++)
            code = make_filter(axes + i, i == TDN_COLUMNS, f + i);
        w = (window){f[0].low, f[1].low, f[0].high - f[0].low, f[1].high - f[1].low};
        for (int i = 0; i < f[1].count && code == TDN_DONE; i++)
            f[1].first[i] -= f[1].least;
    }
    size_t values = 3 * (size_t)s->extent[1] + 1, seen = 3 * (size_t)(f[1].most - f[1].least) + 1;
    size_t held = axes[0].leading ? 0 : (size_t)(w.height < f[0].taps ? w.height : f[0].taps);
    workspace m = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    if (code == TDN_DONE) {
        m.levels = malloc(values);
        m.row = calloc(seen + (3 + held) * values, sizeof *m.row);
        m.lines = malloc(sizeof *m.lines * (size_t)(f[0].taps + 1));
        code = m.levels && m.row && m.lines ? TDN_DONE : TDN_NO_MEMORY;
    }
    if (code == TDN_DONE && frame)
        code = decode_upright(r, s, frame, &w, &d, &pixels);
    if (code == TDN_DONE && plain && !d.into) {
        write_window(r, k, s, &pixels, m.levels);
    } else if (code == TDN_DONE && !plain) {
        size_t step = is_plain(r) ? 3 : 1, channel = is_plain(r) ? 1 : (size_t)s->extent[1];
        m.sums = m.row + seen;
        m.add = m.sums + values;
        m.take = m.add + values;
        m.ring = m.take + values;
        make_rounding(axes, channel, step, &m);
        resample(r, k, s, &pixels, f, axes[0].leading, channel, step, &m);
    }
    release(f);
    free(m.levels);
    free(m.row);
    free(m.lines);
    free(d.pixels);
    free(d.turned);
    return code;
}

/* Describe a view of a canvas as a sample. */
static void sample_of(const tdn_step *t, const tdn_canvas *c, tdn_sample *s)
{
    const int32_t *part = t->part;
    s->data = c->pixels;
    s->length = 3 * (uint64_t)c->height * (uint64_t)c->width;
    s->width = c->width;
    s->scale = 1;
    for (int i = 0; i < 2; i++) {
        s->low[i] = part[i];
        s->high[i] = part[2 + i];
        s->size[i] = part[4 + i];
        s->start[i] = part[6 + i];
        s->extent[i] = part[8 + i];
        s->first[i] = part[i] < part[2 + i] ? part[i] : part[2 + i];
        s->last[i] = part[i] < part[2 + i] ? part[2 + i] : part[i];
    }
    s->mirror = part[10];
    s->filter = part[11];
}

/* Decode and resize a sample, run its steps on the pixels, and write the result. */
static int make_by_steps(const tdn_recipe *r, const tdn_sample *s, const int lengths[2], const frame_header *frame)
{
    tdn_recipe bytes = *r;
    bytes.table = NULL;
    bytes.affine = bytes.planar = 0;
    bytes.item = 1;
    bytes.channels = 3;
    tdn_sample part = *s;
    tdn_canvas c, view;
    int code = tdn_new_canvas(&c, s->extent[0], s->extent[1], s->max_pixels);
    part.out = c.pixels;
    if (code == TDN_DONE)
        code = make(&bytes, &part, lengths, frame);
    for (const tdn_step *t = s->steps; t < s->steps + s->count && code == TDN_DONE; t++) {
        if (t->kind != TDN_VIEW) {
            code = tdn_take_step(t, r->level, s->max_pixels, &c);
            continue;
        }
        int sides[2] = {c.height, c.width}, last = t == s->steps + s->count - 1;
        sample_of(t, &c, &part);
        view = (tdn_canvas){NULL, 0, 0};
        code = last ? TDN_DONE : tdn_new_canvas(&view, part.extent[0], part.extent[1], s->max_pixels);
        part.out = last ? s->out : view.pixels;
        if (code == TDN_DONE)
            code = make(last ? r : &bytes, &part, sides, NULL);
        free(c.pixels);
        c = view;
    }
    free(c.pixels);
    return code;
}

#define MOST_BYTES ((uint64_t)1 << 32)
#define MOST_LINES (1 << 20)

static int run_one(const tdn_recipe *r, const tdn_sample *s)
{
    if (!s->data || !s->out || s->length > MOST_BYTES || s->width < 0
        || (s->count && (s->count < 0 || !s->steps || s->steps[s->count - 1].kind != TDN_VIEW)))
        return TDN_INVALID;
    int (*make_it)(const tdn_recipe *, const tdn_sample *, const int[2], const frame_header *) =
        s->count ? make_by_steps : make;
    if (s->width) {
        uint64_t row = 3 * (uint64_t)s->width, rows = s->length / row;
        if (!rows || s->length % row || s->scale != 1)
            return TDN_INVALID;
        int pixels[2] = {(int)rows, s->width};
        return rows > MOST_LINES || s->width > MOST_LINES || rows * row / 3 > s->max_pixels ? TDN_TOO_LARGE
                                                                                            : make_it(r, s, pixels, NULL);
    }
    frame_header frame;
    int code = read_header(s->data, s->length, &frame);
    if (code != TDN_DONE)
        return code;
    if (frame.shown.channels != 1 && frame.shown.channels != 3 && frame.shown.channels != 4)
        return TDN_UNSUPPORTED;
    if (s->data[s->length - 2] != 0xFF || s->data[s->length - 1] != 0xD9)
        return TDN_DAMAGED; /* truncated, or followed by something else */
    uint64_t values = (uint64_t)frame.shown.channels * (uint64_t)frame.shown.height * (uint64_t)frame.shown.width;
    if (values / (uint64_t)frame.shown.channels > s->max_pixels
        || (values > r->free_values && values > s->length * r->per_byte))
        return TDN_TOO_LARGE;
    if (!r->upright)
        frame.shown.orientation = 1;
    int turned = frame.shown.orientation > 4;
    int lengths[2] = {turned ? frame.shown.width : frame.shown.height,
                      turned ? frame.shown.height : frame.shown.width};
    if (s->scale != 1) {
        if (s->scale != 2 && s->scale != 4 && s->scale != 8)
            return TDN_INVALID;
        if (frame.shown.orientation != 1 || frame.shown.channels == 4)
            return TDN_UNSUPPORTED; /* blocks start elsewhere in the upright image */
        for (int i = 0; i < 2; i++)
            lengths[i] = (lengths[i] + s->scale - 1) / s->scale;
    }
    return make_it(r, s, lengths, &frame);
}

int tdn_run(const tdn_recipe *recipe, tdn_sample *samples, int count)
{
    int failed = 0, valid = valid_recipe(recipe) && recipe->per_byte >> 24 == 0;
    for (int i = 0; i < count; i++) {
        samples[i].code = valid ? run_one(recipe, samples + i) : TDN_INVALID;
        failed += samples[i].code != TDN_DONE;
    }
    return failed;
}

/* ---------------------------------------------------------------- windows of a chunk */

/* A stream of random numbers from Philox4x32-10 (see rng.py); the counter consists of block, record and epoch. */
typedef struct {
    uint64_t key, record, epoch;
    uint64_t next; /* index of the next number */
    uint32_t block[4];
} numbers;

static void draw_block(numbers *n)
{
    uint32_t k0 = (uint32_t)n->key, k1 = (uint32_t)(n->key >> 32), *c = n->block;
    c[0] = (uint32_t)(n->next / 4), c[1] = (uint32_t)n->record, c[2] = (uint32_t)(n->record >> 32), c[3] = (uint32_t)n->epoch;
    for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        c[0] = (uint32_t)(b >> 32) ^ c[1] ^ k0, c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c[3] ^ k1, c[3] = (uint32_t)a;
    }
}

static double next_number(numbers *n)
{
    if (n->next % 4 == 0)
        draw_block(n);
    return n->block[n->next++ % 4] * 0x1p-32;
}

/* Return the side of a square in whole pixels, at least 1; INT32_MAX if it is NaN or larger. */
static int64_t side(double area)
{
    double length = sqrt(area) + 0.5;
    return length < 1 ? 1 : length < INT32_MAX ? (int64_t)length : INT32_MAX;
}

static int64_t least(int64_t length, double other)
{
    return other < (double)length ? (other > 0 ? (int64_t)other : 0) : length;
}

/* Choose the same window as `random_window` in kernels/random_window.py. */
static void choose_at_random(const tdn_choice *r, numbers *n, int64_t height, int64_t width, int64_t window[4])
{
    int64_t h = 0, w = 0;
    for (int64_t i = 0; i < r->attempts; i++) {
        double share = r->area[0] + (r->area[1] - r->area[0]) * next_number(n);
        double pixels = (share > 0 ? share : 0) * (double)height * (double)width;
        double aspect = exp(r->log_ratio[0] + (r->log_ratio[1] - r->log_ratio[0]) * next_number(n));
        int64_t across = side(pixels * aspect), down = side(pixels / aspect);
        double ratio = (double)across / (double)down;
        if (across <= width && down <= height && r->ratio[0] <= ratio && ratio <= r->ratio[1]) {
            h = down, w = across;
            break;
        }
    }
    if (!h) {
        double ratio = (double)width / (double)height, area = r->area[1] > 0 ? r->area[1] : 0;
        ratio = ratio > r->ratio[0] ? ratio : r->ratio[0];
        ratio = ratio < r->ratio[1] ? ratio : r->ratio[1];
        h = least(height, (double)width / ratio), w = least(width, (double)height * ratio);
        double shrink = area * (double)height * (double)width / (double)(h * w > 1 ? h * w : 1);
        shrink = sqrt(shrink < 1 ? shrink : 1);
        h = (int64_t)((double)h * shrink), w = (int64_t)((double)w * shrink);
        h = h > 1 ? h : 1, w = w > 1 ? w : 1;
    }
    window[0] = (int64_t)(next_number(n) * (double)(height - h + 1));
    window[1] = (int64_t)(next_number(n) * (double)(width - w + 1));
    window[2] = h, window[3] = w;
}

static void choose(const tdn_choice *choice, uint64_t key, const uint64_t sample[2], const tdn_header *header,
                   int64_t window[4])
{
    int turned = choice->upright && header->orientation > 4;
    int64_t height = turned ? header->width : header->height, width = turned ? header->height : header->width;
    if (choice->kind == TDN_RANDOM) {
        numbers n = {.key = key, .epoch = sample[0], .record = sample[1]};
        choose_at_random(choice, &n, height, width, window);
    } else if (choice->kind == TDN_WHOLE) {
        window[0] = window[1] = 0;
        window[2] = height, window[3] = width;
    }
}

void tdn_divide(const tdn_choice *choice, uint64_t key, const uint64_t *samples, const tdn_file *files, tdn_part *parts,
                int count, int32_t below, double *starts, double *ends, int64_t totals[3])
{
    int64_t pixels = 0, copies = 0, shared = 0;
    for (int i = 0; i < count; i++) {
        const tdn_file *f = files + i;
        tdn_part *p = parts + i;
        choose(choice, key, samples ? samples + 2 * i : NULL, &f->header, p->window);
        for (int k = 0; k < 2 && starts && choice->kind == TDN_RANDOM; k++) {
            starts[2 * i + k] = (double)p->window[k];
            ends[2 * i + k] = (double)(p->window[k] + p->window[2 + k]);
        }
        p->index = f->lot >= 0 && f->lot < below ? shared++ : -1;
        p->shape[0] = p->index < 0 ? p->window[2] : f->header.height;
        p->shape[1] = p->index < 0 ? p->window[3] : f->header.width;
        p->shape[2] = 3;
        if (p->index >= 0) {
            p->place = copies;
            copies += (int64_t)((f->length + 63) / 64 * 64);
            continue;
        }
        p->place = pixels;
        pixels += p->shape[0] * p->shape[1] * 3;
        for (int k = 0; k < 2 && starts; k++) {
            starts[2 * i + k] -= (double)p->window[k];
            ends[2 * i + k] -= (double)p->window[k];
        }
    }
    totals[0] = pixels;
    totals[1] = copies;
    totals[2] = shared;
}

static int fits(int64_t start, int64_t extent)
{
    return start >= 0 && extent > 0 && start <= INT32_MAX && extent <= INT32_MAX - start;
}

int tdn_do_parts(const tdn_recipe *recipe, tdn_file *files, const tdn_part *parts, int count, uint64_t max_pixels,
                 uint8_t *pixels, uint8_t *copies)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        tdn_file *f = files + i;
        const tdn_part *p = parts + i;
        const int64_t *w = p->window;
        if (p->index >= 0) {
            f->out = copies + p->place;
            memcpy(f->out, f->data, f->length);
            f->code = TDN_DONE;
            continue;
        }
        f->code = TDN_INVALID;
        if (fits(w[0], w[2]) && fits(w[1], w[3])) {
            int32_t y = (int32_t)w[0], x = (int32_t)w[1], h = (int32_t)w[2], v = (int32_t)w[3];
            tdn_sample s = {.data = f->data, .length = f->length, .max_pixels = max_pixels, .out = pixels + p->place,
                            .low = {y, x}, .high = {y + h, x + v}, .size = {h, v}, .extent = {h, v}, .first = {y, x},
                            .last = {y + h, x + v}, .scale = 1};
            tdn_run(recipe, &s, 1);
            f->code = s.code;
        }
        failed += f->code != TDN_DONE;
    }
    return failed;
}
