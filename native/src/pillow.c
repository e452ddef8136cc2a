/* Pillow's resize and other operations on pixels, bit-identical: see native.h.

   The weights of a resize are integers of 22 bits, so sums are exact in any order.  Each axis is rounded to bytes. */
#include "pillow.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _MSC_VER
#define restrict __restrict
#endif

#define PRECISION 22 /* the weight 1 is 1 << PRECISION */
#define PART 9       /* bits of the lower part of a weight, for vectors that use two parts */
#define MOST_TAPS (1 << 24)
#define MOST_LINES (1 << 20)
#define PI 3.14159265358979323846
#define HUES 64 /* pixels per block of turn_hues */

typedef struct {
    float fine[256], share[256]; /* position of a hue in its sector, saturation / 255 */
    int32_t sector[256];
} hue_table;

/* An affine or a perspective transformation of a canvas. */
typedef struct {
    const tdn_canvas *from;
    const double *number;
    int perspective, cubic, width;
    uint8_t fill[3];
} bending;

static inline int within(int i, int count)
{
    return i < 0 ? 0 : i < count ? i : count - 1;
}

static inline void place_of(const bending *w, int x, int y, double at[2])
{
    const double *a = w->number;
    double px = x + 0.5, py = y + 0.5;
    at[0] = a[0] * px + a[1] * py + a[2];
    at[1] = a[3] * px + a[4] * py + a[5];
    if (w->perspective) {
        double depth = a[6] * px + a[7] * py + 1;
        at[0] /= depth;
        at[1] /= depth;
    }
}

#ifdef TDN_VECTORS
typedef int32_t ints4 __attribute__((vector_size(16)));
#endif

#if defined(TDN_VECTORS) && defined(__SSE2__)
#include <immintrin.h>

static inline __m128i load_4_ints(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    __m128i zero = _mm_setzero_si128(), bytes = _mm_cvtsi32_si128(four);
    return _mm_unpacklo_epi16(_mm_unpacklo_epi8(bytes, zero), zero);
}

static inline void store_16_levels(uint8_t *to, const ints4 *sum)
{
    __m128i low = _mm_packs_epi32((__m128i)sum[0], (__m128i)sum[1]), high = _mm_packs_epi32((__m128i)sum[2], (__m128i)sum[3]);
    _mm_storeu_si128((__m128i *)to, _mm_packus_epi16(low, high));
}
#elif defined(TDN_VECTORS)
#include <arm_neon.h>

static inline uint32x4_t load_4_ints(const uint8_t *p)
{
    uint32_t four;
    memcpy(&four, p, 4);
    return vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(four))));
}

static inline void store_16_levels(uint8_t *to, const ints4 *sum)
{
    int16x8_t low = vcombine_s16(vqmovn_s32((int32x4_t)sum[0]), vqmovn_s32((int32x4_t)sum[1]));
    int16x8_t high = vcombine_s16(vqmovn_s32((int32x4_t)sum[2]), vqmovn_s32((int32x4_t)sum[3]));
    vst1q_u8(to, vcombine_u8(vqmovun_s16(low), vqmovun_s16(high)));
}
#endif

#define NAME(name) name##_base
#define TARGET
#define COLOR double
#define CHANNELS 3
#define LOAD_COLOR(p, c) ((double)(p)[c])
#define STORE_COLOR(to, c, v) ((to)[c] = (uint8_t)((v) <= 0 ? 0 : (v) >= 255 ? 255 : (int)(v)))
#ifdef TDN_VECTORS
#define FLOATS floats4
#define INTS ints4
#define LOAD_INTS(p) load_4_ints(p)
#define STORE_LEVELS(to, sum) store_16_levels(to, sum)
#endif
#include "loops.h"

#if TDN_LEVELS > 1
typedef int32_t ints8 __attribute__((vector_size(32)));
typedef int32_t ints16 __attribute__((vector_size(64)));
typedef float floats8 __attribute__((vector_size(32)));
typedef float floats16 __attribute__((vector_size(64)));
typedef double doubles4 __attribute__((vector_size(32)));

__attribute__((target("avx2"))) static inline void store_32_levels(uint8_t *to, const ints8 *sum)
{
    __m256i low = _mm256_packs_epi32((__m256i)sum[0], (__m256i)sum[1]);
    __m256i both = _mm256_packus_epi16(low, _mm256_packs_epi32((__m256i)sum[2], (__m256i)sum[3]));
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

__attribute__((target("avx512f"))) static inline void store_64_levels(uint8_t *to, const ints16 *sum)
{
    for (int i = 0; i < 4; i++) {
        __m512i positive = _mm512_max_epi32((__m512i)sum[i], _mm512_setzero_si512());
        _mm_storeu_si128((__m128i *)(to + 16 * i), _mm512_cvtusepi32_epi8(positive));
    }
}

/* Load a pixel of three channels, and the byte after it. */
__attribute__((target("avx2"))) static inline doubles4 load_color(const uint8_t *p)
{
    int32_t four;
    memcpy(&four, p, 4);
    return (doubles4)_mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
}

__attribute__((target("avx2"))) static inline void store_color(uint8_t *to, doubles4 v)
{
    __m128i levels = _mm256_cvttpd_epi32((__m256d)v);
    levels = _mm_packs_epi32(levels, levels);
    int32_t four = _mm_cvtsi128_si32(_mm_packus_epi16(levels, levels));
    memcpy(to, &four, 3);
}

#define NAME(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#define FLOATS floats8
#define COLOR doubles4
#define CHANNELS 1
#define LOAD_COLOR(p, c) load_color(p)
#define STORE_COLOR(to, c, v) store_color(to, v)
#define INTS ints8
#define LOAD_INTS(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p)))
#define STORE_LEVELS(to, sum) store_32_levels(to, sum)
#define EIGHT
#include "loops.h"
#define NAME(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define FLOATS floats16
#define COLOR doubles4
#define CHANNELS 1
#define LOAD_COLOR(p, c) load_color(p)
#define STORE_COLOR(to, c, v) store_color(to, v)
#define INTS ints16
#define LOAD_INTS(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p)))
#define STORE_LEVELS(to, sum) store_64_levels(to, sum)
#define EIGHT
#include "loops.h"
#endif

typedef struct {
    void (*weigh_rows)(const uint8_t *const *, const int32_t *, int, uint8_t *, int);
    void (*weigh_columns)(const uint8_t *, const tdn_lines *, uint8_t *, size_t, size_t);
    void (*weigh_floats)(const float *const *, const float *, int, float *, int);
    void (*blend)(const uint8_t *, uint8_t *, int, float);
    void (*make_gray)(const uint8_t *, uint8_t *, int);
    void (*smooth)(const uint8_t *, const uint8_t *, const uint8_t *, uint8_t *, int);
    void (*turn_hues)(uint8_t *, int, int, const hue_table *);
    void (*bend_row)(const bending *, int, uint8_t *);
} loops;

static const loops LEVELS[TDN_LEVELS] = {
#define LOOPS(level) \
    {weigh_rows##level, weigh_columns##level, weigh_floats##level, blend##level, make_gray##level, smooth##level, \
     turn_hues##level, bend_row##level}
    LOOPS(_base),
#if TDN_LEVELS > 1
    LOOPS(_avx2),
    LOOPS(_avx512),
#endif
};

/* ---------------------------------------------------------------- lines of a resize */

static double reach_of(int filter)
{
    return filter == TDN_PIL_BOX ? 0.5 : filter == TDN_PIL_BICUBIC ? 2 : filter == TDN_PIL_LANCZOS ? 3 : 1;
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(x * PI) / (x * PI);
}

static double value_of(int filter, double x)
{
    double t = fabs(x);
    switch (filter) {
    case TDN_PIL_BOX: /* includes only one of its two ends */
        return x > -0.5 && x <= 0.5;
    case TDN_PIL_BILINEAR:
        return t < 1 ? 1 - t : 0;
    case TDN_PIL_HAMMING: /* the coefficients are float32 in Pillow */
        return t < 1 ? sinc(t) * ((double)0.54f + (double)0.46f * cos(t * PI)) : 0;
    case TDN_PIL_BICUBIC:
        return t < 1 ? ((-0.5 + 2) * t - (-0.5 + 3)) * t * t + 1 : t < 2 ? (((t - 5) * t + 8) * t - 4) * -0.5 : 0;
    default:
        return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    }
}

/* One axis of a resize: `length` input lines from `begin` on become `size` lines, of which `extent` from `start` on are
   computed. */
typedef struct {
    int begin, length, size, start, extent;
    int turned, mirrored; /* reverse the lines before the resize, and after it */
    int filter, coarse;
} axis;

/* Store the sum of a line; `line` and `first` are counted in the order of the resize, before mirroring. */
static void put_line(const axis *a, int line, int first, int count, const int32_t *weight, tdn_lines *f)
{
    int place = a->mirrored ? a->extent - 1 - (line - a->start) : line - a->start;
    int32_t *to = f->weight + (size_t)place * (size_t)f->stride;
    memset(to, 0, sizeof *to * (size_t)f->stride);
    for (int k = 0; k < count; k++)
        to[k] = weight[a->turned ? count - 1 - k : k];
    f->taps = count > f->taps ? count : f->taps;
    f->first[place] = a->begin + (a->turned ? a->length - first - count : first);
    f->low = f->first[place] < f->low ? f->first[place] : f->low;
    f->high = f->first[place] + count > f->high ? f->first[place] + count : f->high;
}

static void make_nearest(const axis *a, tdn_lines *f)
{
    const int32_t whole = 1 << PRECISION;
    double step = (double)a->length / a->size, at = step * 0.5;
    for (int i = 0; i < a->start + a->extent; i++, at += step) {
        int pixel = (int)at < a->length ? (int)at : a->length - 1;
        if (i >= a->start)
            put_line(a, i, pixel, 1, &whole, f);
    }
}

/* Compute the weights of a line, and return their number.  Precision and order of operations are the same as in
   Pillow, because they affect the last bit. */
static int weigh(const axis *a, int line, double *value, int *first)
{
    double scale = (double)a->length / a->size, wide = scale < 1 ? 1 : scale;
    double reach = reach_of(a->filter) * wide, narrow = 1 / wide, center = (line + 0.5) * scale, sum = 0;
    int last = (int)(center + reach + 0.5);
    *first = (int)(center - reach + 0.5);
    *first = *first < 0 ? 0 : *first;
    last = last > a->length ? a->length : last;
    for (int k = *first; k < last; k++) {
        value[k - *first] = value_of(a->filter, (k - center + 0.5) * narrow);
        sum += value[k - *first];
    }
    for (int k = 0; k < last - *first && sum != 0; k++)
        value[k] /= sum;
    return last - *first;
}

/* Return PyTorch's PRECISION: the largest number of bits with which all weights fit in 16 bits. */
static int precision_of(const axis *a, double *value)
{
    double most = 0;
    for (int i = 0; i < a->size; i++)
        for (int first, k = weigh(a, i, value, &first); k-- > 0;)
            most = value[k] > most ? value[k] : most;
    int bits = 0;
    while (bits < PRECISION && (int)(0.5 + most * (1 << (bits + 1))) < 1 << 15)
        bits++;
    return bits;
}

static void make_weighted(const axis *a, double *value, int32_t *weight, tdn_lines *f)
{
    int bits = a->coarse ? precision_of(a, value) : PRECISION;
    for (int i = a->start; i < a->start + a->extent; i++) {
        int first, count = weigh(a, i, value, &first);
        for (int k = 0; k < count; k++) {
            double v = value[k] * (1 << bits);
            weight[k] = (int)(v < 0 ? v - 0.5 : v + 0.5) * (1 << (PRECISION - bits));
        }
        put_line(a, i, first, count, weight, f);
    }
}

/* Arrange the weights for vectors of eight pixels: pairs of two weights, repeated for each channel, for pixels i and
   i + 4; first the weights' lower parts, and then their upper parts. */
static int make_parts(tdn_lines *f)
{
    size_t blocks = (size_t)f->count / 8, pairs = (size_t)(f->taps + 1) / 2;
    f->memory = calloc(blocks * pairs * 128 + 32, sizeof *f->parts);
    if (!f->memory)
        return TDN_NO_MEMORY;
    f->parts = (int16_t *)(((uintptr_t)f->memory + 31) / 32 * 32);
    for (size_t i = 0; i < 8 * blocks; i++)
        for (size_t k = 0; k < (size_t)f->taps; k++) {
            int32_t weight = f->weight[i * (size_t)f->stride + k];
            int16_t *to = f->parts + ((i / 8 * pairs + k / 2) * 4 + i % 4) * 32 + i % 8 / 4 * 8 + k % 2;
            for (int c = 0; c < 8; c += 2) {
                to[c] = (int16_t)(weight & ((1 << PART) - 1));
                to[c + 16] = (int16_t)(weight >> PART);
            }
        }
    return TDN_DONE;
}

static int make_lines(const axis *a, tdn_lines *f)
{
    double scale = (double)a->length / a->size;
    double taps = a->filter == TDN_PIL_NEAREST ? 1 : 2 * ceil(reach_of(a->filter) * (scale < 1 ? 1 : scale)) + 1;
    if (taps * a->extent > MOST_TAPS)
        return TDN_TOO_LARGE;
    f->count = a->extent;
    f->stride = (int)(taps < a->length ? taps : a->length);
    f->low = a->begin + a->length;
    f->high = a->begin;
    f->first = malloc(sizeof *f->first * (size_t)f->count);
    f->weight = malloc(sizeof *f->weight * (size_t)f->count * (size_t)f->stride);
    double *value = malloc((sizeof *value + sizeof *f->weight) * (size_t)f->stride);
    if (!f->first || !f->weight || !value) {
        free(value);
        return TDN_NO_MEMORY;
    }
    if (a->filter == TDN_PIL_NEAREST || a->size == a->length)
        make_nearest(a, f);
    else
        make_weighted(a, value, (int32_t *)(value + f->stride), f);
    free(value);
    return TDN_DONE;
}

int tdn_begin_resize(const tdn_sample *s, int level, tdn_resizer *z)
{
    memset(z, 0, sizeof *z);
    int filter = s->filter & ~(TDN_ROWS_FIRST | TDN_COARSE), code = TDN_DONE;
    if (filter < TDN_PIL_NEAREST || filter > TDN_PIL_LANCZOS)
        return TDN_INVALID;
    z->rows_first = (s->filter & TDN_ROWS_FIRST) != 0;
    z->level = tdn_level(level);
    for (int i = 0; i < 2 && code == TDN_DONE; i++) {
        axis a = {s->first[i], s->last[i] - s->first[i], s->size[i], s->start[i], s->extent[i], s->high[i] < s->low[i],
                  (s->mirror & (i == TDN_ROWS ? TDN_UPSIDE_DOWN : TDN_MIRROR)) != 0, filter, s->filter & TDN_COARSE};
        code = make_lines(&a, i == TDN_ROWS ? &z->rows : &z->columns);
    }
    for (int i = 0; i < z->columns.count && code == TDN_DONE; i++)
        z->columns.first[i] = 3 * (z->columns.first[i] - z->columns.low);
    return code == TDN_DONE && z->level > 0 ? make_parts(&z->columns) : code;
}

void tdn_end_resize(tdn_resizer *z)
{
    tdn_lines *axes[2] = {&z->rows, &z->columns};
    for (int i = 0; i < 2; i++) {
        free(axes[i]->first);
        free(axes[i]->weight);
        free(axes[i]->memory);
    }
    free(z->lines);
    free(z->row);
    free(z->done);
}

/* ---------------------------------------------------------------- a resize */

static const uint8_t *row_of(const tdn_resizer *z, int row)
{
    return z->from.pixels + (size_t)(row - z->from.top) * z->from.stride + 3 * (ptrdiff_t)(z->columns.low - z->from.left);
}

int tdn_resize(tdn_resizer *z, const tdn_image *from, size_t channel, size_t step)
{
    const loops *k = LEVELS + z->level;
    size_t seen = 3 * (size_t)(z->columns.high - z->columns.low), width = 3 * (size_t)z->columns.count;
    z->from = *from;
    z->channel = channel;
    z->step = step;
    z->lines = malloc(sizeof *z->lines * (size_t)z->rows.taps);
    /* The zeros at the end are read with zero weights, or by loads of 16 bytes. */
    z->row = calloc(seen + 3 * (size_t)(z->columns.taps + 1) + 16, 1);
    if (!z->lines || !z->row)
        return TDN_NO_MEMORY;
    if (z->rows_first)
        return TDN_DONE;
    z->done = malloc(width * (size_t)(z->rows.high - z->rows.low));
    if (!z->done)
        return TDN_NO_MEMORY;
    for (int i = z->rows.low; i < z->rows.high; i++) {
        memcpy(z->row, row_of(z, i), seen);
        k->weigh_columns(z->row, &z->columns, z->done + (size_t)(i - z->rows.low) * width, channel, step);
    }
    return TDN_DONE;
}

void tdn_resize_row(const tdn_resizer *z, int row, uint8_t *to)
{
    const loops *k = LEVELS + z->level;
    size_t seen = 3 * (size_t)(z->columns.high - z->columns.low), width = 3 * (size_t)z->columns.count;
    const int32_t *weight = z->rows.weight + (size_t)row * (size_t)z->rows.stride;
    int n = 0;
    for (; n < z->rows.taps && z->rows.first[row] + n < z->rows.high; n++) {
        int at = z->rows.first[row] + n;
        z->lines[n] = z->rows_first ? row_of(z, at) : z->done + (size_t)(at - z->rows.low) * width;
    }
    while (n > 1 && !weight[n - 1])
        n--;
    k->weigh_rows(z->lines, weight, n, z->rows_first ? z->row : to, (int)(z->rows_first ? seen : width));
    if (z->rows_first)
        k->weigh_columns(z->row, &z->columns, to, z->channel, z->step);
}

/* ---------------------------------------------------------------- steps: colors */

int tdn_new_canvas(tdn_canvas *c, int64_t height, int64_t width, uint64_t max_pixels)
{
    *c = (tdn_canvas){NULL, (int)height, (int)width};
    if (height < 1 || width < 1)
        return TDN_INVALID;
    if (height > MOST_LINES || width > MOST_LINES || (uint64_t)(height * width) > max_pixels)
        return TDN_TOO_LARGE;
    c->pixels = malloc(3 * (size_t)height * (size_t)width + 64);
    return c->pixels ? TDN_DONE : TDN_NO_MEMORY;
}

static void replace(tdn_canvas *c, tdn_canvas with)
{
    free(c->pixels);
    *c = with;
}

static uint8_t *row_at(const tdn_canvas *c, int row)
{
    return c->pixels + 3 * (size_t)row * (size_t)c->width;
}

static void look_up(tdn_canvas *c, uint8_t table[3][256])
{
    size_t count = 3 * (size_t)c->height * (size_t)c->width;
    for (uint8_t *p = c->pixels; p < c->pixels + count; p += 3)
        for (int k = 0; k < 3; k++)
            p[k] = table[k][p[k]];
}

/* Count the pixels of each level. */
static void count_levels(const tdn_canvas *c, uint32_t counts[3][256])
{
    size_t count = 3 * (size_t)c->height * (size_t)c->width;
    memset(counts, 0, 3 * 256 * sizeof(uint32_t));
    for (const uint8_t *p = c->pixels; p < c->pixels + count; p += 3)
        for (int k = 0; k < 3; k++)
            counts[k][p[k]]++;
}

static void stretch_levels(const uint32_t *counts, uint8_t *table)
{
    int low = 0, high = 255;
    while (low < 255 && !counts[low])
        low++;
    while (high > 0 && !counts[high])
        high--;
    if (high <= low)
        return;
    double scale = 255.0 / (high - low), offset = -low * scale;
    for (int i = 0; i < 256; i++) {
        int v = (int)(i * scale + offset);
        table[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

static void equalize_levels(const uint32_t *counts, uint8_t *table)
{
    uint64_t all = 0, last = 0, kinds = 0;
    for (int i = 0; i < 256; i++)
        if (counts[i]) {
            all += counts[i];
            last = counts[i];
            kinds++;
        }
    uint64_t step = (all - last) / 255, sum = step / 2;
    if (kinds < 2 || !step)
        return;
    for (int i = 0; i < 256; i++) {
        table[i] = (uint8_t)(sum / step > 255 ? 255 : sum / step);
        sum += counts[i];
    }
}

/* Run a step that maps each level on its own. */
static void map_levels(const tdn_step *t, tdn_canvas *c)
{
    uint8_t table[3][256];
    uint32_t counts[3][256];
    if (t->kind == TDN_AUTOCONTRAST || t->kind == TDN_EQUALIZE)
        count_levels(c, counts);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 256; i++) {
            int inverted = t->kind == TDN_INVERT || (t->kind == TDN_SOLARIZE && i >= t->number[0]);
            table[k][i] = (uint8_t)(inverted ? 255 - i : t->kind == TDN_POSTERIZE ? i & (0xFF00 >> t->part[0]) : i);
        }
        if (t->kind == TDN_AUTOCONTRAST)
            stretch_levels(counts[k], table[k]);
        else if (t->kind == TDN_EQUALIZE)
            equalize_levels(counts[k], table[k]);
    }
    look_up(c, table);
}

static int mean_gray(const loops *k, const tdn_canvas *c, uint8_t *gray)
{
    uint64_t sum = 0;
    for (int y = 0; y < c->height; y++) {
        uint32_t line = 0;
        k->make_gray(row_at(c, y), gray, c->width);
        for (int x = 0; x < 3 * c->width; x++)
            line += gray[x];
        sum += line / 3;
    }
    return (int)((double)sum / ((double)c->height * c->width) + 0.5);
}

/* Blend a canvas with black, with its mean, or with gray or smoothed pixels. */
static int mix(const tdn_step *t, const loops *k, tdn_canvas *c)
{
    size_t width = 3 * (size_t)c->width, all = width * (size_t)c->height;
    int sharpens = t->kind == TDN_SHARPNESS, inner = c->width > 2 && c->height > 2;
    float factor = (float)t->number[0];
    if (factor == 1 || (sharpens && !inner))
        return TDN_DONE;
    uint8_t *other = malloc(width + (sharpens ? all : 0)), *old = other + width;
    if (!other)
        return TDN_NO_MEMORY;
    if (sharpens)
        memcpy(old, c->pixels, all);
    else
        memset(other, t->kind == TDN_CONTRAST ? mean_gray(k, c, other) : 0, width);
    for (int y = sharpens; y < c->height - sharpens; y++) {
        const uint8_t *row = sharpens ? old + (size_t)y * width + 3 : NULL;
        if (sharpens)
            k->smooth(row - width, row, row + width, other, 3 * (c->width - 2));
        else if (t->kind == TDN_SATURATION)
            k->make_gray(row_at(c, y), other, c->width);
        k->blend(other, row_at(c, y) + 3 * sharpens, 3 * (c->width - 2 * sharpens), factor);
    }
    free(other);
    return TDN_DONE;
}

static int take_colors(const loops *k, tdn_canvas *c)
{
    size_t width = 3 * (size_t)c->width;
    uint8_t *gray = malloc(width);
    if (!gray)
        return TDN_NO_MEMORY;
    for (int y = 0; y < c->height; y++) {
        k->make_gray(row_at(c, y), gray, c->width);
        memcpy(row_at(c, y), gray, width);
    }
    free(gray);
    return TDN_DONE;
}

static void turn_all_hues(const tdn_step *t, const loops *k, tdn_canvas *c)
{
    hue_table table;
    for (int i = 0; i < 256; i++) {
        double place = (double)(float)i * 6.0 / 255.0;
        table.fine[i] = (float)(place - (double)(float)(int)place);
        table.sector[i] = (int)place % 6;
        table.share[i] = (float)((double)(float)i / 255.0);
    }
    size_t count = (size_t)c->height * (size_t)c->width;
    for (size_t i = 0; i < count; i += HUES)
        k->turn_hues(c->pixels + 3 * i, (int)(count - i < HUES ? count - i : HUES), t->part[0], &table);
}

static void permute(const tdn_step *t, tdn_canvas *c)
{
    size_t count = 3 * (size_t)c->height * (size_t)c->width;
    for (uint8_t *p = c->pixels; p < c->pixels + count; p += 3) {
        uint8_t old[3] = {p[0], p[1], p[2]};
        for (int k = 0; k < 3; k++)
            p[k] = old[t->part[k]];
    }
}

/* ---------------------------------------------------------------- steps: places */

static int64_t remainder_of(int64_t i, int64_t period)
{
    return i % period < 0 ? i % period + period : i % period;
}

/* Return the index of the pixel for a position, which may be outside; -1 for the fill value. */
static int source_of(int64_t i, int count, int border)
{
    if (i >= 0 && i < count)
        return (int)i;
    if (border == TDN_CONSTANT)
        return -1;
    if (border == TDN_EDGE || (border == TDN_REFLECT && count == 1))
        return i < 0 ? 0 : count - 1;
    if (border == TDN_REFLECT) {
        i = remainder_of(i, 2 * (int64_t)count - 2);
        return (int)(i < count ? i : 2 * (int64_t)count - 2 - i);
    }
    i = remainder_of(i, 2 * (int64_t)count);
    return (int)(i < count ? i : 2 * (int64_t)count - 1 - i);
}

static void fill_row(uint8_t *to, int count, const int32_t *levels)
{
    for (int i = 0; i < 3 * count; i++)
        to[i] = (uint8_t)levels[i % 3];
}

/* Write a row of a window: copy the pixels inside of the image, and add the pixels outside. */
static void take_row(const uint8_t *from, int count, int left, int border, const int32_t *fill, uint8_t *to, int width)
{
    int64_t begin = -(int64_t)left, end = (int64_t)count - left;
    begin = begin < 0 ? 0 : begin > width ? width : begin;
    end = end < begin ? begin : end > width ? width : end;
    if (begin < end)
        memcpy(to + 3 * begin, from + 3 * (begin + left), 3 * (size_t)(end - begin));
    for (int64_t x = begin ? 0 : end; x < width; x = x + 1 == begin ? end : x + 1) {
        int column = source_of(left + x, count, border);
        if (column < 0)
            fill_row(to + 3 * x, 1, fill);
        else
            memcpy(to + 3 * x, from + 3 * (size_t)column, 3);
    }
}

static int take_window(const tdn_step *t, uint64_t max_pixels, tdn_canvas *c)
{
    const int32_t *part = t->part;
    tdn_canvas to;
    int code = tdn_new_canvas(&to, part[2], part[3], max_pixels);
    if (code != TDN_DONE)
        return code;
    for (int y = 0; y < to.height; y++) {
        int row = source_of((int64_t)part[0] + y, c->height, part[4]);
        if (row < 0)
            fill_row(row_at(&to, y), to.width, part + 5);
        else
            take_row(row_at(c, row), c->width, part[1], part[4], part + 5, row_at(&to, y), to.width);
    }
    replace(c, to);
    return TDN_DONE;
}

static void fill_window(const tdn_step *t, tdn_canvas *c)
{
    const int32_t *part = t->part;
    int64_t top = part[0] > 0 ? part[0] : 0, left = part[1] > 0 ? part[1] : 0;
    int64_t bottom = (int64_t)part[0] + part[2], right = (int64_t)part[1] + part[3];
    bottom = bottom < c->height ? bottom : c->height;
    right = right < c->width ? right : c->width;
    for (int64_t y = top; y < bottom && left < right; y++)
        fill_row(row_at(c, (int)y) + 3 * left, (int)(right - left), part + 4);
}

static int turn_quarters(const tdn_step *t, uint64_t max_pixels, tdn_canvas *c)
{
    tdn_canvas to;
    int code = tdn_new_canvas(&to, c->width, c->height, max_pixels), left = t->part[0] == 1;
    if (code != TDN_DONE)
        return code;
    for (int y = 0; y < to.height; y++)
        for (int x = 0; x < to.width; x++)
            memcpy(row_at(&to, y) + 3 * (size_t)x,
                   row_at(c, left ? x : c->height - 1 - x) + 3 * (size_t)(left ? c->width - 1 - y : y), 3);
    replace(c, to);
    return TDN_DONE;
}

static void put_nearest(const bending *w, double x, double y, uint8_t *to)
{
    const tdn_canvas *from = w->from;
    int inside = x >= 0 && x < from->width && y >= 0 && y < from->height;
    memcpy(to, inside ? row_at(from, (int)y) + 3 * (size_t)(int)x : w->fill, 3);
}

/* Narrow the range of positions in a row to positions with 0 <= begin + position * step < end. */
static void keep_inside(int64_t begin, int64_t step, int64_t end, int64_t places[2])
{
    int64_t first = step > 0 ? -begin : begin - end + 1, last = step > 0 ? end - begin : begin + 1;
    int64_t size = step > 0 ? step : -step;
    if (!step) {
        first = 0;
        last = begin >= 0 && begin < end ? places[1] : 0;
        size = 1;
    }
    first = first > 0 ? (first + size - 1) / size : 0; /* first position inside, and first position after these */
    last = last > 0 ? (last + size - 1) / size : 0;
    places[0] = first > places[0] ? first : places[0];
    places[1] = last < places[1] ? last : places[1];
}

/* Warp with nearest pixels; positions have 16 fractional bits. */
static void bend_fixed(const bending *w, const tdn_canvas *to)
{
    const double *a = w->number;
    int64_t step[6], size[2] = {(int64_t)w->from->width << 16, (int64_t)w->from->height << 16};
    const double begin[2] = {a[2] + a[0] * 0.5 + a[1] * 0.5, a[5] + a[3] * 0.5 + a[4] * 0.5};
    for (int i = 0; i < 6; i++)
        step[i] = (int64_t)floor((i % 3 == 2 ? begin[i / 3] : a[i]) * 65536 + 0.5);
    const int32_t fill[3] = {w->fill[0], w->fill[1], w->fill[2]};
    for (int y = 0; y < to->height; y++, step[2] += step[1], step[5] += step[4]) {
        int64_t places[2] = {0, to->width};
        keep_inside(step[2], step[0], size[0], places);
        keep_inside(step[5], step[3], size[1], places);
        places[1] = places[1] < places[0] ? places[0] : places[1];
        uint8_t *p = row_at(to, y);
        fill_row(p, (int)(places[0] < to->width ? places[0] : to->width), fill);
        uint32_t px = (uint32_t)(step[2] + places[0] * step[0]), py = (uint32_t)(step[5] + places[0] * step[3]);
        for (int64_t x = places[0]; x < places[1]; x++, px += (uint32_t)step[0], py += (uint32_t)step[3])
            memcpy(p + 3 * x, row_at(w->from, (int)(py >> 16)) + 3 * (size_t)(px >> 16), 4); /* and one byte more */
        if (places[1] < to->width)
            fill_row(p + 3 * places[1], (int)(to->width - places[1]), fill);
    }
}

/* Warp with nearest pixels; positions are doubles. */
static void bend_nearest(const bending *w, const tdn_canvas *to)
{
    const double *a = w->number;
    double begin[2] = {a[2] + a[1] * 0.5 + a[0] * 0.5, a[5] + a[4] * 0.5 + a[3] * 0.5};
    for (int y = 0; y < to->height; y++, begin[0] += a[1], begin[1] += a[4]) {
        uint8_t *p = row_at(to, y);
        double px = begin[0], py = begin[1], at[2];
        for (int x = 0; x < to->width; x++, p += 3, px += a[0], py += a[3]) {
            place_of(w, x, y, at);
            put_nearest(w, w->perspective ? at[0] : px, w->perspective ? at[1] : py, p);
        }
    }
}

/* Return whether Pillow uses bend_fixed: the map does more than scale, and the corners are near enough. */
static int is_fixed(const bending *w, const tdn_canvas *to)
{
    const double *a = w->number;
    int fixed = !w->perspective && (a[1] != 0 || a[3] != 0);
    for (int i = 0; i < 4; i++) {
        double x = i % 2 ? to->width : 0, y = i / 2 ? to->height : 0;
        fixed = fixed && fabs(x * a[0] + y * a[1] + a[2]) < 32768 && fabs(x * a[3] + y * a[4] + a[5]) < 32768;
    }
    return fixed;
}

static int bend(const tdn_step *t, const loops *k, uint64_t max_pixels, tdn_canvas *c)
{
    const int32_t *part = t->part;
    tdn_canvas to;
    bending w = {c, t->number, t->kind == TDN_PERSPECTIVE, part[2] == TDN_PIL_BICUBIC, part[1], {0, 0, 0}};
    fill_row(w.fill, 1, part + 3);
    if (part[2] != TDN_PIL_NEAREST && part[2] != TDN_PIL_BILINEAR && part[2] != TDN_PIL_BICUBIC)
        return TDN_INVALID;
    for (int i = 0; i < (w.perspective ? 8 : 6); i++)
        if (!(fabs(t->number[i]) < 1e9))
            return TDN_INVALID;
    int code = tdn_new_canvas(&to, part[0], part[1], max_pixels);
    if (code != TDN_DONE)
        return code;
    if (part[2] == TDN_PIL_NEAREST)
        (is_fixed(&w, &to) ? bend_fixed : bend_nearest)(&w, &to);
    else
        for (int y = 0; y < to.height; y++)
            k->bend_row(&w, y, row_at(&to, y));
    replace(c, to);
    return TDN_DONE;
}

static void make_bell(int count, double deviation, float *weight)
{
    double sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            double x = (i - count / 2) / deviation, v = exp(-0.5 * x * x);
            sum += pass ? 0 : v;
            weight[i] = (float)(v / sum);
        }
}

/* Convert a row of bytes to floats, and extend it by reflection. */
static void make_floats(const uint8_t *from, int count, int beside, float *to)
{
    for (int i = 0; i < 3 * count; i++)
        to[3 * beside + i] = (float)from[i];
    for (int x = 1; x <= beside; x++)
        for (int c = 0; c < 3; c++) {
            to[3 * (beside - x) + c] = (float)from[3 * x + c];
            to[3 * (beside + count - 1 + x) + c] = (float)from[3 * (count - 1 - x) + c];
        }
}

/* Blur with a Gaussian window along both axes, in float32; results are rounded once. */
static int blur(const tdn_step *t, const loops *k, tdn_canvas *c)
{
    int height = t->part[0], width = t->part[1], count = 3 * c->width, next = 0;
    if (height < 1 || width < 1 || height % 2 == 0 || width % 2 == 0 || height / 2 >= c->height || width / 2 >= c->width
        || !(t->number[0] > 0) || !(t->number[1] > 0))
        return TDN_INVALID;
    size_t most = (size_t)(height > width ? height : width);
    /* Weights of both axes, an extended row, and a ring buffer with as many rows as a window. */
    float *memory = malloc(sizeof(float) * (2 * most + 3 * (size_t)width + ((size_t)height + 1) * (size_t)count));
    const float **lines = malloc(sizeof *lines * most);
    if (!memory || !lines) {
        free(memory);
        free(lines);
        return TDN_NO_MEMORY;
    }
    float *along = memory, *across = along + most, *row = across + most, *ring = row + count + 3 * width;
    make_bell(width, t->number[1], along);
    make_bell(height, t->number[0], across);
    for (int y = 0; y < c->height; y++) {
        for (; next < c->height && next <= y + height / 2; next++) {
            make_floats(row_at(c, next), c->width, width / 2, row);
            for (int i = 0; i < width; i++)
                lines[i] = row + 3 * i;
            k->weigh_floats(lines, along, width, ring + (size_t)(next % height) * (size_t)count, count);
        }
        for (int i = 0; i < height; i++)
            lines[i] = ring + (size_t)(source_of(y - height / 2 + i, c->height, TDN_REFLECT) % height) * (size_t)count;
        k->weigh_floats(lines, across, height, row, count);
        uint8_t *to = row_at(c, y);
        for (int i = 0; i < count; i++) {
            float v = row[i] + 12582912.0f; /* at this size, floats are integers, rounded to even */
            v -= 12582912.0f;
            to[i] = (uint8_t)(int)(v > 255 ? 255 : v);
        }
    }
    free(memory);
    free(lines);
    return TDN_DONE;
}

/* ---------------------------------------------------------------- steps */

int tdn_take_step(const tdn_step *t, int level, uint64_t max_pixels, tdn_canvas *c)
{
    const loops *k = LEVELS + tdn_level(level);
    const int32_t *part = t->part;
    switch (t->kind) {
    case TDN_WINDOW:
        return part[4] < TDN_CONSTANT || part[4] > TDN_SYMMETRIC ? TDN_INVALID : take_window(t, max_pixels, c);
    case TDN_TURN:
        return part[0] != 1 && part[0] != 3 ? TDN_INVALID : turn_quarters(t, max_pixels, c);
    case TDN_AFFINE:
    case TDN_PERSPECTIVE:
        return bend(t, k, max_pixels, c);
    case TDN_BRIGHTNESS:
    case TDN_CONTRAST:
    case TDN_SATURATION:
    case TDN_SHARPNESS:
        return fabs(t->number[0]) < 1e6 ? mix(t, k, c) : TDN_INVALID;
    case TDN_BLUR:
        return blur(t, k, c);
    case TDN_HUE:
        turn_all_hues(t, k, c);
        return TDN_DONE;
    case TDN_GRAY:
        return take_colors(k, c);
    case TDN_POSTERIZE:
        if (part[0] < 1 || part[0] > 8)
            return TDN_INVALID;
        /* fall through */
    case TDN_INVERT:
    case TDN_SOLARIZE:
    case TDN_AUTOCONTRAST:
    case TDN_EQUALIZE:
        map_levels(t, c);
        return TDN_DONE;
    case TDN_FILL:
        fill_window(t, c);
        return TDN_DONE;
    case TDN_CHANNELS:
        for (int i = 0; i < 3; i++)
            if (part[i] < 0 || part[i] > 2)
                return TDN_INVALID;
        permute(t, c);
        return TDN_DONE;
    default:
        return TDN_INVALID;
    }
}
