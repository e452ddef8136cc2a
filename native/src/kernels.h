/* The loops over pixels for one level of vector instructions; this file is included once per level.

   NAME makes a function's name, and TARGET selects its instructions.  If there are vectors, FLOATS is a vector of LANES
   floats, and LOAD_BYTES converts LANES bytes to such a vector.  Products are always added in the same order, and never
   fused with the addition, so that results on all levels are bit-identical. */

/* Compute the weighted sum of n rows of bytes. */
TARGET static void NAME(sum_rows)(const uint8_t *const *row, const float *weight, int n, float *sum, int count)
{
    int j = 0;
#ifdef LANES
    for (; j + 4 * LANES <= count; j += 4 * LANES) {
        FLOATS a = {0}, b = {0}, c = {0}, d = {0};
        for (int k = 0; k < n; k++) {
            const uint8_t *p = row[k] + j;
            a += weight[k] * LOAD_BYTES(p);
            b += weight[k] * LOAD_BYTES(p + LANES);
            c += weight[k] * LOAD_BYTES(p + 2 * LANES);
            d += weight[k] * LOAD_BYTES(p + 3 * LANES);
        }
        memcpy(sum + j, &a, sizeof a);
        memcpy(sum + j + LANES, &b, sizeof b);
        memcpy(sum + j + 2 * LANES, &c, sizeof c);
        memcpy(sum + j + 3 * LANES, &d, sizeof d);
    }
#endif
    for (; j < count; j++) {
        float a = 0;
        for (int k = 0; k < n; k++)
            a += weight[k] * (float)row[k][j];
        sum[j] = a;
    }
}

/* Compute the weighted sum of n rows of sums. */
TARGET static void NAME(sum_sums)(const float *const *row, const float *weight, int n, float *sum, int count)
{
    memset(sum, 0, sizeof *sum * (size_t)count);
    for (int k = 0; k < n; k++)
        for (int j = 0; j < count; j++)
            sum[j] += weight[k] * row[k][j];
}

/* Compute `count` weighted sums of n pixels each, from `first[i]` on, in three channels.  One value after the last pixel
   is read, and one may be written.  Channel c of pixel i is written to sum[c * channel + i * step]. */
TARGET static void NAME(sum_pixels)(const float *row, const int32_t *first, const float *weight, int n, int count,
                                    float *sum, size_t channel, size_t step)
{
    for (int i = 0; i < count; i++, weight += n, sum += step) {
        const float *p = row + 3 * (ptrdiff_t)first[i];
#ifdef LANES
        floats4 a = {0}, x;
        for (int k = 0; k < n; k++, p += 3) {
            memcpy(&x, p, sizeof x);
            a += weight[k] * x;
        }
        if (channel == 1) {
            memcpy(sum, &a, sizeof a);
            continue;
        }
#else
        float a[3] = {0, 0, 0};
        for (int k = 0; k < n; k++, p += 3)
            for (int c = 0; c < 3; c++)
                a[c] += weight[k] * p[c];
#endif
        sum[0] = a[0];
        sum[channel] = a[1];
        sum[2 * channel] = a[2];
    }
}

/* Round sums to levels: add `add` and subtract `take`, which determine how halves are rounded. */
TARGET static void NAME(round_sums)(const float *sum, const float *add, const float *take, int count, uint8_t *level)
{
    for (int i = 0; i < count; i++) {
        int v = (int)(sum[i] + add[i] - take[i]);
        level[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
    }
}

/* level * scale + shift, as float32. */
TARGET static void NAME(scale_levels)(const uint8_t *level, int count, float scale, float shift, float *out)
{
    int i = 0;
#ifdef LANES
    for (; i + LANES <= count; i += LANES) {
        FLOATS a = LOAD_BYTES(level + i) * scale + shift;
        memcpy(out + i, &a, sizeof a);
    }
#endif
    for (; i < count; i++)
        out[i] = (float)level[i] * scale + shift;
}

#undef NAME
#undef TARGET
#undef LANES
#undef FLOATS
#undef LOAD_BYTES
