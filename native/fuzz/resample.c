/* Resample noise: resample SEED COUNT

   Built with the sanitizers, like fuzz.c.  The seed of each input is SEED plus its number.  The program also checks that
   results are equal on all levels of vector instructions and in plain C. */
#include "native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library built with TDN_PLAIN. */
int plain_resample(const tdn_signal *signals, int count, const float *table, int taps, int level);
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

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: %s SEED COUNT\n", argv[0]), 2;
    uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), done = 0;
    for (uint64_t i = 0; i < count; i++) {
        state = (seed + i) * 0xD1342543DE82EF95u;
        done += resample();
    }
    printf("%llu inputs, %llu signals resampled\n", (unsigned long long)count, (unsigned long long)done);
    return 0;
}
