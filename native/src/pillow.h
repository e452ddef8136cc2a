/* The functions of pillow.c that native.c calls.  A line is a row or a column; see native.c. */
#ifndef TORCHDALI_PILLOW_H
#define TORCHDALI_PILLOW_H

#include "native.h"

typedef struct {
    const uint8_t *pixels; /* window of the upright image from row `top` and column `left` on, in three channels */
    size_t stride;
    int top, left;
} tdn_image;

/* Weighted sums along an axis: line i is the sum of up to `taps` input lines from first[i] on, with weights from
   stride * i on. */
typedef struct {
    int count, taps, stride;
    int32_t *first, *weight; /* for columns, `first` is an offset in bytes */
    int16_t *parts; /* weights for vector instructions, in `memory`; or NULL */
    void *memory;
    int low, high;  /* range of input lines in the sums */
} tdn_lines;

/* State of a resize.  Channel c of pixel i of a row is written to c * channel + i * step. */
typedef struct {
    tdn_lines rows, columns;
    int rows_first, level;
    size_t channel, step;
    tdn_image from;
    const uint8_t **lines; /* the rows in the sum of an output row */
    uint8_t *row;          /* a row of the image, followed by zeros */
    uint8_t *done;         /* rows that are resized along the columns */
} tdn_resizer;

/* Compute the sums of both axes, and return a result code.  The caller must call tdn_end_resize even after a failure. */
int tdn_begin_resize(const tdn_sample *s, int level, tdn_resizer *z);
/* Prepare the resize of an image that contains all input lines of the sums; return a result code. */
int tdn_resize(tdn_resizer *z, const tdn_image *from, size_t channel, size_t step);
void tdn_resize_row(const tdn_resizer *z, int row, uint8_t *to);
void tdn_end_resize(tdn_resizer *z);

/* Pixels between steps; a canvas's memory is larger than its pixels, so that vectors can access memory after their end. */
typedef struct {
    uint8_t *pixels;
    int height, width;
} tdn_canvas;

int tdn_new_canvas(tdn_canvas *c, int64_t height, int64_t width, uint64_t max_pixels);
/* Run a step that isn't a view; return a result code. */
int tdn_take_step(const tdn_step *t, int level, uint64_t max_pixels, tdn_canvas *c);

#endif
