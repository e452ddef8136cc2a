/* Resample audio: see native.h. */
#include "native.h"

#include <string.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

enum { LANES = 8 };

/* Products are added in LANES partial sums and always in the same order, so results on all levels are bit-identical. */
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

/* Return the sum of products at a position between two positions of the table, with interpolated weights. */
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
#endif

/* Copy `taps` samples of a channel, from `first` on; samples outside of the signal are 0. */
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

#define LOOPS(level, target)                                                                                   \
    target static void resample##level(const tdn_signal *s, const float *table, int taps)                      \
    {                                                                                                          \
        if (taps == 32) /* the default quality: its loops are unrolled */                                      \
            resample(s, table, 32, 32);                                                                        \
        else                                                                                                   \
            resample(s, table, taps, (taps + LANES - 1) / LANES * LANES);                                      \
    }

LOOPS(_base, )
#if defined(__GNUC__) && defined(__x86_64__) && !defined(TDN_PLAIN)
LOOPS(_avx2, __attribute__((target("avx2"))))
#define CHOOSE(level, name) (tdn_level(level) > 0 ? name##_avx2 : name##_base)
#else
#define CHOOSE(level, name) ((void)(level), name##_base)
#endif

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
