/* The loops of pillow.c for one level of vector instructions; this file is included once per level, like kernels.h.

   Indices are ptrdiff_t: with -fwrapv, which is one of Python's flags, compilers don't vectorize `3 * i` for an int. */

#define HALF (1 << (PRECISION - 1))

static inline uint8_t NAME(level_of)(int32_t sum)
{
    sum >>= PRECISION;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Compute the weighted sum of n rows of bytes. */
TARGET static void NAME(weigh_rows)(const uint8_t *const *row, const int32_t *weight, int n, uint8_t *to, int count)
{
    int j = 0;
#ifdef INTS
    enum { LANES = sizeof(INTS) / sizeof(int32_t), BLOCK = 4 * LANES };
    for (; j < count && count >= BLOCK; j += BLOCK) {
        j = j < count - BLOCK ? j : count - BLOCK; /* the last block overlaps the block before it */
        INTS sum[4] = {HALF - (INTS){0}, HALF - (INTS){0}, HALF - (INTS){0}, HALF - (INTS){0}};
        for (int k = 0; k < n; k++)
            for (int i = 0; i < 4; i++)
                sum[i] += weight[k] * (INTS)LOAD_INTS(row[k] + j + i * LANES);
        for (int i = 0; i < 4; i++)
            sum[i] >>= PRECISION;
        STORE_LEVELS(to + j, sum);
    }
#endif
    for (; j < count; j++) {
        int32_t sum = HALF;
        for (int k = 0; k < n; k++)
            sum += weight[k] * row[k][j];
        to[j] = NAME(level_of)(sum);
    }
}

#ifdef EIGHT
/* Compute the weighted sums of pixels 0 to 3 and 4 to 7, four bytes each.  A step adds two input pixels, with weights in
   two parts (see make_parts). */
TARGET static inline __m256i NAME(weigh_eight)(const uint8_t *row, const int32_t *place, const int16_t *parts, int taps)
{
    const __m256i spread = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1));
    const __m256i next = _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1));
    __m256i low[4], high[4], pixels[4];
    for (int i = 0; i < 4; i++)
        low[i] = high[i] = pixels[i] = _mm256_setzero_si256();
    for (int k = 0; k < taps; k += 2, parts += 128) {
        if (k && k % 4 == 0)
            row += 12;
        for (int i = 0; i < 4; i++) {
            if (k % 4 == 0)
                pixels[i] = _mm256_inserti128_si256(
                    _mm256_castsi128_si256(_mm_loadu_si128((const void *)(row + place[i]))),
                    _mm_loadu_si128((const void *)(row + place[i + 4])), 1);
            __m256i two = _mm256_shuffle_epi8(pixels[i], k % 4 ? next : spread);
            low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(two, _mm256_load_si256((const void *)(parts + 32 * i))));
            high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(two, _mm256_load_si256((const void *)(parts + 32 * i + 16))));
        }
    }
    for (int i = 0; i < 4; i++) {
        low[i] = _mm256_add_epi32(low[i], _mm256_slli_epi32(high[i], PART));
        low[i] = _mm256_srai_epi32(_mm256_add_epi32(low[i], _mm256_set1_epi32(HALF)), PRECISION);
    }
    return _mm256_packus_epi16(_mm256_packs_epi32(low[0], low[1]), _mm256_packs_epi32(low[2], low[3]));
}
#endif

/* Compute the weighted sums of the pixels of a row, which starts at the first pixel that the sums read. */
TARGET static void NAME(weigh_columns)(const uint8_t *row, const tdn_lines *f, uint8_t *to, size_t channel, size_t step)
{
    int i = 0;
#ifdef EIGHT
    const __m256i planes = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1));
    const __m256i colors = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m256i halves = step == 1 ? _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7) : _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    const int16_t *parts = f->parts;
    for (; i + 8 <= f->count; i += 8, parts += (size_t)(f->taps + 1) / 2 * 128) {
        __m256i levels = NAME(weigh_eight)(row, f->first + i, parts, f->taps);
        levels = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(levels, step == 1 ? planes : colors), halves);
        uint8_t eight[32];
        memcpy(eight, &levels, sizeof eight);
        for (int c = 0; c < 3; c++)
            memcpy(to + (step == 1 ? (size_t)i + (size_t)c * channel : (size_t)(3 * i + 8 * c)), eight + 8 * c, 8);
    }
#endif
    for (; i < f->count; i++) {
        const uint8_t *p = row + f->first[i];
        const int32_t *weight = f->weight + (size_t)i * (size_t)f->stride;
        int32_t sum[3] = {HALF, HALF, HALF};
        for (int k = 0; k < f->taps; k++, p += 3)
            for (int c = 0; c < 3; c++)
                sum[c] += weight[k] * p[c];
        for (int c = 0; c < 3; c++)
            to[(size_t)i * step + (size_t)c * channel] = NAME(level_of)(sum[c]);
    }
}

/* Compute other + factor * (pixels - other), as Pillow does. */
TARGET static void NAME(blend)(const uint8_t *restrict other, uint8_t *restrict pixels, int count, float factor)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        float v = (float)other[i] + factor * (float)(pixels[i] - other[i]);
        v = v < 0 ? 0 : v;
        pixels[i] = (uint8_t)(int)(v > 255 ? 255 : v);
    }
}

/* Convert pixels to gray, as three equal channels. */
TARGET static void NAME(make_gray)(const uint8_t *pixels, uint8_t *to, int count)
{
    ptrdiff_t i = 0;
#ifdef EIGHT
    const __m128i pairs = _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1);
    const __m128i others = _mm_setr_epi8(1, -1, 2, -1, 4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1);
    const __m128i triple = _mm_setr_epi8(2, 2, 2, 6, 6, 6, 10, 10, 10, 14, 14, 14, -1, -1, -1, -1);
    /* Green's weight doesn't fit in 16 bits, so it is split in two. */
    const __m128i weights = _mm_set1_epi32(19595 | 19235 << 16), more = _mm_set1_epi32(19235 | 7471 << 16);
    for (; i + 6 <= count; i += 4) {
        __m128i four = _mm_loadu_si128((const void *)(pixels + 3 * i));
        __m128i sum = _mm_add_epi32(_mm_madd_epi16(_mm_shuffle_epi8(four, pairs), weights),
                                    _mm_madd_epi16(_mm_shuffle_epi8(four, others), more));
        sum = _mm_shuffle_epi8(_mm_add_epi32(sum, _mm_set1_epi32(0x8000)), triple);
        memcpy(to + 3 * i, &sum, 12);
    }
#endif
    for (; i < count; i++)
        to[3 * i] = to[3 * i + 1] = to[3 * i + 2] = (uint8_t)(
            (pixels[3 * i] * 19595 + pixels[3 * i + 1] * 38470 + pixels[3 * i + 2] * 7471 + 0x8000) >> 16);
}

/* Average 3x3 pixels with a larger weight in the middle.  The last bit depends on the order of the additions. */
TARGET static void NAME(smooth)(const uint8_t *above, const uint8_t *row, const uint8_t *below, uint8_t *restrict to,
                                int count)
{
    const float one = 1.0f / 13.0f, five = 5.0f / 13.0f;
    for (ptrdiff_t i = 0; i < count; i++) {
        float v = 0.5f;
        v += (float)below[i - 3] * one + (float)below[i] * one + (float)below[i + 3] * one;
        v += (float)row[i - 3] * one + (float)row[i] * five + (float)row[i + 3] * one;
        v += (float)above[i - 3] * one + (float)above[i] * one + (float)above[i + 3] * one;
        to[i] = (uint8_t)(int)(v > 255 ? 255 : v);
    }
}

/* Compute the weighted sum of n rows of floats. */
TARGET static void NAME(weigh_floats)(const float *const *row, const float *weight, int n, float *to, int count)
{
    ptrdiff_t j = 0;
#ifdef FLOATS
    enum { LANES = sizeof(FLOATS) / sizeof(float), BLOCK = 4 * LANES };
    for (; j < count && count >= BLOCK; j += BLOCK) {
        j = j < count - BLOCK ? j : count - BLOCK;
        FLOATS sum[4] = {{0}, {0}, {0}, {0}}, x;
        for (int k = 0; k < n; k++)
            for (int i = 0; i < 4; i++) {
                memcpy(&x, row[k] + j + i * LANES, sizeof x);
                sum[i] += weight[k] * x;
            }
        memcpy(to + j, sum, sizeof sum);
    }
#endif
    for (; j < count; j++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += weight[k] * row[k][j];
        to[j] = sum;
    }
}

/* Add `turn` to the hues of up to HUES pixels, in place.  The casts to float and double are Pillow's. */
TARGET static void NAME(turn_hues)(uint8_t *pixels, int count, int turn, const hue_table *table)
{
    int32_t r[HUES], g[HUES], b[HUES], h[HUES], s[HUES], v[HUES], p[HUES], q[HUES], t[HUES], colored[HUES];
    float fine[HUES], share[HUES], hue[3][HUES];
    for (ptrdiff_t i = 0; i < count; i++) {
        r[i] = pixels[3 * i];
        g[i] = pixels[3 * i + 1];
        b[i] = pixels[3 * i + 2];
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        int most = r[i] > g[i] ? r[i] : g[i], least = r[i] < g[i] ? r[i] : g[i];
        most = most > b[i] ? most : b[i];
        least = least < b[i] ? least : b[i];
        int some = most != least, height = most + !most;
        float range = (float)(most - least + !some), full = range / (float)height;
        float red = (float)(most - r[i]) / range, green = (float)(most - g[i]) / range, blue = (float)(most - b[i]) / range;
        hue[0][i] = blue - green;
        hue[1][i] = (float)(2.0 + (double)red - (double)blue);
        hue[2][i] = (float)(4.0 + (double)green - (double)red);
        v[i] = most;
        s[i] = (int)((double)full * 255.0);
        colored[i] = -some;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        float one = hue[0][i], two = hue[1][i], three = hue[2][i], other = g[i] == v[i] ? two : three;
        double turned = (double)(r[i] == v[i] ? one : other) / 6.0 + 1.0; /* from 0.8 to 1.9 */
        h[i] = (((int)((double)(float)(turned - (double)(int)turned) * 255.0) & colored[i]) + turn) & 255;
        s[i] &= colored[i];
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        fine[i] = table->fine[h[i]];
        share[i] = table->share[s[i]];
        h[i] = table->sector[h[i]];
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        double value = (double)v[i], one = value * (1.0 - (double)share[i]), other = value * (1.0 - (double)(share[i] * fine[i]));
        double third = value * (1.0 - (double)share[i] * (1.0 - (double)fine[i]));
        p[i] = (int)one;
        q[i] = (int)other;
        t[i] = (int)third;
        p[i] += one - (double)p[i] >= 0.5; /* round half up; adding 0.5 before the conversion could change the last bit */
        q[i] += other - (double)q[i] >= 0.5;
        t[i] += third - (double)t[i] >= 0.5;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        int k = h[i], red = k == 0 || k == 5 ? v[i] : k == 1 ? q[i] : k == 4 ? t[i] : p[i];
        int green = k == 1 || k == 2 ? v[i] : k == 0 ? t[i] : k == 3 ? q[i] : p[i];
        int blue = k == 3 || k == 4 ? v[i] : k == 2 ? t[i] : k == 5 ? q[i] : p[i];
        pixels[3 * i] = (uint8_t)red;
        pixels[3 * i + 1] = (uint8_t)green;
        pixels[3 * i + 2] = (uint8_t)blue;
    }
}

/* Interpolate between b and c with a cubic curve, in Pillow's order of operations. */
TARGET static inline COLOR NAME(curve)(COLOR a, COLOR b, COLOR c, COLOR d, double at)
{
    COLOR square = 2 * (a - b) + c - d, cube = -a + b - c + d;
    return b + at * (-a + c + at * (square + at * cube));
}

/* Compute a pixel of a warped image from four (linear) or sixteen (cubic) pixels. */
TARGET static inline void NAME(bend_pixel)(const bending *w, double px, double py, int cubic, uint8_t *to)
{
    const tdn_canvas *from = w->from;
    int left = px < 0 ? -1 : (int)px, top = py < 0 ? -1 : (int)py, column[4];
    double dx = px - left, dy = py - top;
    const uint8_t *row[4];
    for (int k = !cubic; k < 4 - !cubic; k++) {
        column[k] = 3 * within(left - 1 + k, from->width);
        row[k] = from->pixels + 3 * (ptrdiff_t)within(top - 1 + k, from->height) * from->width;
    }
    for (int c = 0; c < CHANNELS; c++) {
        COLOR v, line[4];
        if (cubic) {
            for (int k = 0; k < 4; k++)
                line[k] = NAME(curve)(LOAD_COLOR(row[k] + column[0], c), LOAD_COLOR(row[k] + column[1], c),
                                      LOAD_COLOR(row[k] + column[2], c), LOAD_COLOR(row[k] + column[3], c), dx);
            v = NAME(curve)(line[0], line[1], line[2], line[3], dy);
        } else {
            COLOR above = LOAD_COLOR(row[1] + column[1], c), below = LOAD_COLOR(row[2] + column[1], c);
            above += (LOAD_COLOR(row[1] + column[2], c) - above) * dx;
            below += (LOAD_COLOR(row[2] + column[2], c) - below) * dx;
            v = above + (below - above) * dy;
        }
        STORE_COLOR(to, c, v);
    }
}

TARGET static inline void NAME(bend_pixels)(const bending *w, int y, int cubic, uint8_t *to)
{
    for (int x = 0; x < w->width; x++, to += 3) {
        double at[2];
        place_of(w, x, y, at);
        if (at[0] >= 0 && at[0] < w->from->width && at[1] >= 0 && at[1] < w->from->height)
            NAME(bend_pixel)(w, at[0] - 0.5, at[1] - 0.5, cubic, to);
        else
            memcpy(to, w->fill, 3);
    }
}

TARGET static void NAME(bend_row)(const bending *w, int y, uint8_t *to)
{
    if (w->cubic)
        NAME(bend_pixels)(w, y, 1, to);
    else
        NAME(bend_pixels)(w, y, 0, to);
}

#undef NAME
#undef TARGET
#undef INTS
#undef FLOATS
#undef COLOR
#undef CHANNELS
#undef LOAD_COLOR
#undef STORE_COLOR
#undef LOAD_INTS
#undef STORE_LEVELS
#undef EIGHT
#undef HALF
