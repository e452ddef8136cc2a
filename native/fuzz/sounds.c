/* Mutate WAV files and decode them, resample noise and sum it over bands: sounds SEED COUNT

   Built with the sanitizers, like fuzz.c; the seed of every input is SEED plus its number.  It also sees to it that results
   are the same on all levels of vectors and in plain C, that files together give what each gives alone, and that samples
   lie inside of their file. */
#include "torchdali_native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library built with TDN_PLAIN. */
int plain_resample(const tdn_signal *signals, int count, const float *table, int taps, int level);
int plain_wav_samples(const tdn_sound *sounds, int count, int type, int mixed, void *out, uint64_t room, int level);
int plain_bands(const float *x, uint64_t rows, int columns, const int32_t *bands, const float *weights, int filters,
                float *out, int level);

enum { SOUNDS = 4, MOST = 600 };

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void expect(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        abort();
    }
}

static uint8_t *number(uint8_t *p, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (uint8_t)(value >> 8 * i);
    return p;
}

static uint8_t *chunk(uint8_t *p, const char *name, uint32_t length)
{
    memcpy(p, name, 4);
    return number(p + 4, length, 4);
}

/* Write a file of some kind, most of them sound, and return its length. */
static size_t make(uint8_t *start)
{
    static const uint8_t PLAIN[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71};
    static const uint32_t LIES[] = {0, 1, 7, 15, 16, 17, 39, 40, 0x7FFFFFFF, 0x80000000u, 0xFFFFFFF0u, 0xFFFFFFFFu};
    uint32_t bits = 8 * (1 + draw(4)), channels = 1 + draw(4), extended = draw(3) == 0, bytes = draw(300);
    uint8_t *p = chunk(start, "RIFF", bytes);
    memcpy(p, "WAVE", 4);
    p = chunk(p + 4, "fmt ", extended ? 40 : 16);
    p = number(number(p, extended ? 0xFFFE : draw(20) ? 1 : 3, 2), channels, 2);
    p = number(number(p, draw(9) ? 8000 : 0, 4), 0, 4);
    p = number(number(p, channels * bits / 8, 2), bits, 2);
    if (extended) {
        p = number(number(number(number(p, 22, 2), bits, 2), 0, 4), 1, 2);
        memcpy(p, PLAIN, sizeof PLAIN);
        p += sizeof PLAIN;
    }
    if (draw(3) == 0) {
        uint32_t length = draw(9);
        p = chunk(p, draw(2) ? "LIST" : "fmt ", length) + length + (length & 1);
    }
    p = chunk(p, "data", draw(4) ? bytes : LIES[draw(12)]);
    for (uint32_t i = 0; i < bytes; i++)
        *p++ = (uint8_t)draw(256);
    size_t length = (size_t)(p - start);
    for (uint32_t i = draw(3) ? 0 : draw(6); i > 0; i--)
        start[draw(draw(2) ? 90 : (uint32_t)length) % length] = draw(2) ? (uint8_t)draw(256) : (uint8_t)LIES[draw(8)];
    return draw(4) ? length : draw((uint32_t)length + 1);
}

static uint64_t decode(void)
{
    static uint8_t memory[MOST];
    tdn_sound s[SOUNDS];
    int count = 1 + (int)draw(SOUNDS), type = (int)draw(3), mixed = draw(2) != 0, done = 0;
    uint64_t total = 0, item = type == TDN_INT16 ? 2 : 4;
    for (int i = 0; i < count; i++) {
        memset(memory, 0, sizeof memory);
        size_t length = make(memory);
        uint8_t *exact = malloc(length ? length : 1); /* of just this length: one byte more is a finding */
        memcpy(exact, memory, length);
        s[i] = (tdn_sound){exact, length, 0, 0, 0, 0, 0, 0};
    }
    int failed = tdn_wav_headers(s, count);
    for (int i = 0; i < count; i++) {
        uint64_t bytes = s[i].frames * s[i].channels * s[i].bits / 8;
        done += s[i].code == TDN_DONE;
        if (s[i].code == TDN_DONE)
            expect(s[i].begin + bytes <= s[i].length && s[i].rate && s[i].channels, "samples outside of the file");
        total += s[i].code ? 0 : mixed ? s[i].frames : s[i].frames * s[i].channels;
    }
    expect(failed == count - done, "the count of failures");
    uint8_t *out = malloc(total * item + 1), *alone = malloc(total * item + 1), *p = alone;
    int code = tdn_wav_samples(s, count, type, mixed, out, total, 0);
    expect(!failed || code != TDN_DONE, "samples of no sound");
    if (code == TDN_DONE && total)
        expect(tdn_wav_samples(s, count, type, mixed, out, total - 1, 99) == TDN_INVALID, "samples without room");
    for (int i = 0; i < count && code == TDN_DONE; i++) {
        uint64_t samples = mixed ? s[i].frames : s[i].frames * s[i].channels;
        int found = (i % 2 ? plain_wav_samples : tdn_wav_samples)(s + i, 1, type, mixed, p, samples, 99);
        expect(found == TDN_DONE, "alone");
        p += samples * item;
    }
    expect(code != TDN_DONE || !memcmp(out, alone, total * item), "other samples alone");
    for (int i = 0; i < count; i++)
        free((void *)s[i].data);
    free(out);
    free(alone);
    return code == TDN_DONE;
}

static float *noise(size_t count)
{
    float *found = malloc(sizeof *found * (count ? count : 1));
    for (size_t i = 0; i < count; i++)
        found[i] = (float)draw(65536) / 32768 - 1;
    return found;
}

static uint64_t resample(void)
{
    static const double HARD[] = {0, 1, 0.5, 2, 1e-9, 1e9, 1e300, -1, -1e-9, INFINITY, NAN};
    int taps = draw(20) ? 2 * (1 + (int)draw(65)) : (int)draw(300) - 20;
    size_t width = (size_t)((taps > 0 ? taps : 0) + 7) / 8 * 8, samples = draw(20) ? draw(400) : 0;
    size_t channels = draw(3) ? 1 : draw(4), length = draw(500), bytes = sizeof(float) * length * channels;
    double ratio = draw(4) ? (double)draw(100000) / (1 + draw(30000)) : HARD[draw(11)];
    float *in = noise(samples * channels), *table = noise(2 * TDN_PLACES * width);
    float *out[2] = {malloc(bytes + 1), malloc(bytes + 1)};
    tdn_signal s = {in, NULL, samples, length, channels, ratio};
    int code = -1;
    for (int pass = 0; pass < 4; pass++) {
        s.out = out[pass > 0];
        int found = (pass < 3 ? tdn_resample : plain_resample)(&s, 1, table, taps, pass < 3 ? pass * 50 - 1 : 99);
        expect(code == -1 || (found == code && (code || !memcmp(out[0], out[1], bytes))), "another result on a level");
        code = found;
    }
    for (int i = 0; i < 2; i++)
        free(out[i]);
    free(in);
    free(table);
    return code == TDN_DONE;
}

static uint64_t sum(void)
{
    size_t rows = draw(9), columns = draw(150), filters = draw(40), eights = 0, bytes = sizeof(float) * rows * filters;
    int32_t *bands = malloc(sizeof *bands * 2 * filters + 1);
    for (size_t f = 0; f < filters; f++) {
        int count = (int)draw((uint32_t)columns / 8 + 1), wrong = draw(300) == 0;
        bands[2 * f] = wrong ? (int)draw(400) - 200 : (int)draw((uint32_t)columns - 8 * (uint32_t)count + 1);
        bands[2 * f + 1] = wrong && draw(2) ? (int)draw(0x7FFFFFFF) - 1000 : count;
        eights += wrong ? (size_t)columns / 8 : (size_t)count;
    }
    float *x = noise(rows * columns), *weights = noise(8 * eights), *out[2] = {malloc(bytes + 1), malloc(bytes + 1)};
    int code = -1;
    for (int pass = 0; pass < 3; pass++) {
        int found = (pass < 2 ? tdn_bands : plain_bands)(x, rows, (int)columns, bands, weights, (int)filters,
                                                         out[pass > 0], pass ? 99 : 0);
        expect(code == -1 || (found == code && (code || !memcmp(out[0], out[1], bytes))), "other sums on a level");
        code = found;
    }
    for (int i = 0; i < 2; i++)
        free(out[i]);
    free(x);
    free(weights);
    free(bands);
    return code == TDN_DONE;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: %s SEED COUNT\n", argv[0]), 2;
    uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), done[3] = {0};
    for (uint64_t i = 0; i < count; i++) {
        state = (seed + i) * 0xD1342543DE82EF95u;
        int kind = (int)(i % 3);
        done[kind] += kind == 0 ? decode() : kind == 1 ? resample() : sum();
    }
    printf("%llu inputs: %llu batches of files decoded, %llu signals resampled, %llu spectra summed\n",
           (unsigned long long)count, (unsigned long long)done[0], (unsigned long long)done[1],
           (unsigned long long)done[2]);
    return 0;
}
