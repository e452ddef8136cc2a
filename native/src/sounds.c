/* From the bytes of WAV files to samples, to samples of another rate, and sums over bands of a spectrum: see
   torchdali_native.h. */
#include "torchdali_native.h"

#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* ---------------------------------------------------------------- headers */

static uint32_t two(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t four(const uint8_t *p)
{
    return two(p) | two(p + 2) << 16;
}

enum { PCM = 1, EXTENSIBLE = 0xFFFE, MOST_CHANNELS = 1024 };

/* Read a format, of which `length` bytes are there: 16 at least. */
static int read_format(const uint8_t *p, uint64_t length, tdn_sound *found)
{
    static const uint8_t PLAIN[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    uint32_t kind = two(p), block = two(p + 12);
    found->channels = two(p + 2);
    found->rate = four(p + 4);
    found->bits = two(p + 14);
    if (kind == EXTENSIBLE && length >= 40) {
        if ((two(p + 18) && two(p + 18) != found->bits) || memcmp(p + 26, PLAIN, sizeof PLAIN))
            return TDN_UNSUPPORTED;
        kind = two(p + 24);
    }
    int known = found->bits == 8 || found->bits == 16 || found->bits == 24 || found->bits == 32;
    return kind == PCM && known && found->channels >= 1 && found->channels <= MOST_CHANNELS && found->rate
                   && block == found->channels * found->bits / 8
               ? TDN_DONE
               : TDN_UNSUPPORTED;
}

/* The same reading, byte for byte, as torchdali's own of headers. */
static int read_header(tdn_sound *s)
{
    const uint8_t *p = s->data;
    uint64_t at = 12, size = s->length, length;
    s->frames = s->bits = 0;
    if (!p || size < 12 || memcmp(p, "RIFF", 4) || memcmp(p + 8, "WAVE", 4))
        return TDN_UNSUPPORTED;
    for (; size - at >= 8; at += length + (length & 1)) {
        const uint8_t *name = p + at;
        length = four(name + 4);
        at += 8;
        uint64_t there = size - at;
        if (!memcmp(name, "data", 4)) {
            s->begin = at;
            if (s->bits)
                s->frames = (length < there ? length : there) / (s->channels * s->bits / 8);
            return s->bits ? TDN_DONE : TDN_UNSUPPORTED;
        }
        if (length >= there)
            return TDN_UNSUPPORTED;
        if (!memcmp(name, "fmt ", 4) && length >= 16 && read_format(name + 8, length, s))
            return TDN_UNSUPPORTED;
    }
    return TDN_UNSUPPORTED;
}

int tdn_wav_headers(tdn_sound *sounds, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        sounds[i].code = (uint64_t)read_header(sounds + i);
        failed += sounds[i].code != TDN_DONE;
    }
    return failed;
}

/* ---------------------------------------------------------------- samples */

/* A sample in the upper bits of 32. */
INLINE int32_t word(const uint8_t *p, int bits)
{
    switch (bits) {
    case 8:
        return (int32_t)((uint32_t)(p[0] ^ 0x80) << 24);
    case 16:
        return (int32_t)(two(p) << 16);
    case 24:
        return (int32_t)(two(p) << 8 | (uint32_t)p[2] << 24);
    default:
        return (int32_t)four(p);
    }
}

INLINE float unit(const uint8_t *p, int bits)
{
    return (float)word(p, bits) * 0x1p-31f;
}

INLINE void convert(const uint8_t *p, uint64_t count, int bits, int type, void *out)
{
    uint64_t step = (uint64_t)bits / 8;
    if (type == TDN_FLOAT32)
        for (uint64_t i = 0; i < count; i++)
            ((float *)out)[i] = unit(p + i * step, bits);
    else if (type == TDN_INT16)
        for (uint64_t i = 0; i < count; i++)
            ((int16_t *)out)[i] = (int16_t)(word(p + i * step, bits) >> 16);
    else
        for (uint64_t i = 0; i < count; i++)
            ((int32_t *)out)[i] = word(p + i * step, bits);
}

/* The means of the channels, which are added up in their order. */
INLINE void mix(const uint8_t *p, uint64_t frames, uint64_t channels, int bits, float *out)
{
    uint64_t step = (uint64_t)bits / 8;
    float share = (float)(1.0 / (double)channels);
    for (uint64_t i = 0; i < frames; i++) {
        float sum = unit(p, bits) * share;
        p += step;
        for (uint64_t c = 1; c < channels; c++, p += step)
            sum += unit(p, bits) * share;
        out[i] = sum;
    }
}

INLINE void write_one(const tdn_sound *s, int bits, int type, int mixed, void *out)
{
    const uint8_t *p = s->data + s->begin;
    if (mixed && s->channels > 1)
        mix(p, s->frames, s->channels, bits, out);
    else
        convert(p, s->frames * s->channels, bits, type, out);
}

INLINE void write_sound(const tdn_sound *s, int type, int mixed, void *out)
{
    if (s->bits == 8)
        write_one(s, 8, type, mixed, out);
    else if (s->bits == 16)
        write_one(s, 16, type, mixed, out);
    else if (s->bits == 24)
        write_one(s, 24, type, mixed, out);
    else
        write_one(s, 32, type, mixed, out);
}

/* ---------------------------------------------------------------- resampling, and bands of a spectrum */

enum { LANES = 8 };

/* Sums are taken in one order, in as many lanes, so that all levels of vectors give the same bits. */
#if defined(__GNUC__) && !defined(TDN_PLAIN)
typedef float floats8 __attribute__((vector_size(32)));
typedef float floats4 __attribute__((vector_size(16)));

INLINE void add_products(const float *x, const float *weight, floats8 *sums)
{
    floats8 v, w;
    memcpy(&v, x, sizeof v);
    memcpy(&w, weight, sizeof w);
    *sums += v * w;
}

INLINE float total(const floats8 *sums)
{
    floats4 half[2];
    memcpy(half, sums, sizeof half);
    half[0] += half[1];
    return (half[0][0] + half[0][2]) + (half[0][1] + half[0][3]);
}

/* The sum of products at a place between two samples, with weights between those of two places of the table. */
INLINE float weighed(const float *x, const float *weight, const float *change, float share, int width)
{
    floats8 low = {0}, rise = {0};
    for (int k = 0; k < width; k += LANES) {
        add_products(x + k, weight + k, &low);
        add_products(x + k, change + k, &rise);
    }
    low += share * rise;
    return total(&low);
}

INLINE float band(const float *x, const float *weight, int width)
{
    floats8 sums = {0};
    for (int k = 0; k < width; k += LANES)
        add_products(x + k, weight + k, &sums);
    return total(&sums);
}
#else
static void add_products(const float *x, const float *weight, int width, float *sums)
{
    for (int k = 0; k < width; k++)
        sums[k % LANES] += x[k] * weight[k];
}

static float total(float *sums)
{
    for (int j = 0; j < 4; j++)
        sums[j] += sums[j + 4];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

INLINE float weighed(const float *x, const float *weight, const float *change, float share, int width)
{
    float low[LANES] = {0}, rise[LANES] = {0};
    add_products(x, weight, width, low);
    add_products(x, change, width, rise);
    for (int j = 0; j < LANES; j++)
        low[j] += share * rise[j];
    return total(low);
}

INLINE float band(const float *x, const float *weight, int width)
{
    float sums[LANES] = {0};
    add_products(x, weight, width, sums);
    return total(sums);
}
#endif

/* Take `taps` samples of a channel from a place on; beyond the ends there is silence. */
static void gather(const tdn_signal *s, uint64_t channel, int64_t first, int taps, float *x)
{
    for (int k = 0; k < taps; k++) {
        int64_t i = first + k;
        x[k] = i >= 0 && i < (int64_t)s->samples ? s->in[(uint64_t)i * s->channels + channel] : 0;
    }
}

INLINE void resample(const tdn_signal *s, const float *table, int taps, int width)
{
    float memory[TDN_WIDEST + LANES] = {0};
    int64_t last = (int64_t)s->samples - 1;
    for (uint64_t i = 0; i < s->length; i++) {
        double at = (double)i * s->ratio;
        int64_t whole = at < (double)last ? (int64_t)at : last, first = whole - (taps / 2 - 1);
        double fine = (at - (double)whole) * TDN_PLACES;
        int place = fine < TDN_PLACES - 1 ? (int)fine : TDN_PLACES - 1;
        float share = (float)(fine - place < 1 ? fine - place : 1);
        const float *weight = table + (ptrdiff_t)2 * place * width;
        int beside = s->channels == 1 && taps == width && first >= 0 && first + taps <= last + 1;
        const float *x = beside ? s->in + first : memory;
        for (uint64_t c = 0; c < s->channels; c++) {
            if (!beside)
                gather(s, c, first, taps, memory);
            s->out[i * s->channels + c] = weighed(x, weight, weight + width, share, width);
        }
    }
}

INLINE void sum_bands(const float *x, uint64_t rows, int columns, const int32_t *bands, const float *weights,
                      int filters, float *out)
{
    for (uint64_t i = 0; i < rows; i++, x += columns) {
        const float *weight = weights;
        for (int f = 0; f < filters; f++, out++) {
            int width = LANES * bands[2 * f + 1];
            *out = band(x + bands[2 * f], weight, width);
            weight += width;
        }
    }
}

#define LOOPS(level, target)                                                                                   \
    target static void write_sound##level(const tdn_sound *s, int type, int mixed, void *out)                  \
    {                                                                                                          \
        write_sound(s, type, mixed, out);                                                                      \
    }                                                                                                          \
    target static void resample##level(const tdn_signal *s, const float *table, int taps)                      \
    {                                                                                                          \
        if (taps == 32) /* the default quality: its loops are unrolled */                                      \
            resample(s, table, 32, 32);                                                                        \
        else                                                                                                   \
            resample(s, table, taps, (taps + LANES - 1) / LANES * LANES);                                      \
    }                                                                                                          \
    target static void sum_bands##level(const float *x, uint64_t rows, int columns, const int32_t *bands,      \
                                        const float *weights, int filters, float *out)                         \
    {                                                                                                          \
        sum_bands(x, rows, columns, bands, weights, filters, out);                                             \
    }

LOOPS(_base, )
#if defined(__GNUC__) && defined(__x86_64__) && !defined(TDN_PLAIN)
LOOPS(_avx2, __attribute__((target("avx2"))))
#define CHOOSE(level, name) (tdn_level(level) > 0 ? name##_avx2 : name##_base)
#else
#define CHOOSE(level, name) ((void)(level), name##_base)
#endif

int tdn_wav_samples(const tdn_sound *sounds, int count, int type, int mixed, void *out, uint64_t room, int level)
{
    uint64_t item = type == TDN_INT16 ? 2 : 4;
    if (type < TDN_FLOAT32 || type > TDN_INT32)
        return TDN_INVALID;
    for (const tdn_sound *s = sounds; s < sounds + count; s++) {
        uint64_t samples = mixed ? s->frames : s->frames * s->channels;
        if (s->code || samples > room)
            return TDN_INVALID;
        if (mixed && s->channels > 1 && type != TDN_FLOAT32)
            return TDN_UNSUPPORTED;
        CHOOSE(level, write_sound)(s, type, mixed, out);
        out = (uint8_t *)out + samples * item;
        room -= samples;
    }
    return TDN_DONE;
}

int tdn_resample(const tdn_signal *signals, int count, const float *table, int taps, int level)
{
    if (taps < 2 || taps > TDN_WIDEST || taps % 2)
        return TDN_INVALID;
    for (const tdn_signal *s = signals; s < signals + count; s++) {
        if (!(s->ratio >= 0) || !s->samples || s->samples >> 48 || s->length >> 48 || s->channels >> 32)
            return TDN_INVALID;
        CHOOSE(level, resample)(s, table, taps);
    }
    return TDN_DONE;
}

int tdn_bands(const float *x, uint64_t rows, int columns, const int32_t *bands, const float *weights, int filters,
              float *out, int level)
{
    for (int f = 0; f < filters; f++) {
        int first = bands[2 * f], eights = bands[2 * f + 1];
        if (first < 0 || eights < 0 || first > columns || eights > (columns - first) / LANES)
            return TDN_INVALID;
    }
    CHOOSE(level, sum_bands)(x, rows, columns, bands, weights, filters, out);
    return TDN_DONE;
}
