/* The loops over pixels, for one level of vector instructions: included once for each.

   NAME and TARGET name the functions and say for what they are compiled; where there are vectors, FLOATS is one of
   LANES floats, and LOAD_BYTES makes one of as many bytes.  Products are added in one order, and never fused with the
   sum, so that all levels give the same bits. */

/* The weighted sum of n rows of bytes, `stride` bytes apart. */
TARGET static void NAME(sum_rows)(const uint8_t *row, size_t stride, const float *weight, int n, float *sum, int count)
{
    int j = 0;
#ifdef LANES
    for (; j + 4 * LANES <= count; j += 4 * LANES) {
        const uint8_t *p = row + j;
        FLOATS a = {0}, b = {0}, c = {0}, d = {0};
        for (int k = 0; k < n; k++, p += stride) {
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
            a += weight[k] * (float)row[(size_t)k * stride + j];
        sum[j] = a;
    }
}

/* Levels of `count` pixels of three channels: the weighted sums of n pixels each, from `first[i]` on.  One value beyond
   the last pixel is read.  Channel c of pixel i goes to level[c * channel + i * step]. */
TARGET static void NAME(sum_pixels)(const float *sums, const int32_t *first, const float *weight, int n, int count,
                                    uint8_t *level, size_t channel, size_t step)
{
    for (int i = 0; i < count; i++, weight += n, level += step) {
        const float *p = sums + 3 * (size_t)first[i];
#ifdef LANES
        floats4 a = {0}, x;
        for (int k = 0; k < n; k++, p += 3) {
            memcpy(&x, p, sizeof x);
            a += weight[k] * x;
        }
        ints4 v = __builtin_convertvector(a + 0.5f, ints4), over;
        v &= v > 0;
        over = v > 255;
        v = (v & ~over) | (over & 255);
#else
        float a[3] = {0, 0, 0};
        for (int k = 0; k < n; k++, p += 3)
            for (int c = 0; c < 3; c++)
                a[c] += weight[k] * p[c];
        int v[3];
        for (int c = 0; c < 3; c++) {
            v[c] = (int)(a[c] + 0.5f);
            v[c] = v[c] < 0 ? 0 : v[c] > 255 ? 255 : v[c];
        }
#endif
        level[0] = (uint8_t)v[0];
        level[channel] = (uint8_t)v[1];
        level[2 * channel] = (uint8_t)v[2];
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
