/* What native.c takes from pillow.c. */
#ifndef TORCHDALI_PILLOW_H
#define TORCHDALI_PILLOW_H

#include "native.h"

typedef struct {
    const uint8_t *pixels; /* of the window [top, ...) x [left, ...) of the upright image, three channels */
    size_t stride;
    int top, left;
} tdn_image;

/* The pixels that each line of an axis is made of: at most `taps` from first[i] on, with weights from stride * i on. */
typedef struct {
    int count, taps, stride;
    int32_t *first, *weight; /* the first byte of what is seen, for columns */
    int16_t *parts; /* the weights as vectors take them, and their memory; or NULL */
    void *memory;
    int low, high;  /* what the lines see of the image */
} tdn_lines;

/* A picture on its way to another size.  Channel c of pixel i of a row goes to c * channel + i * step. */
typedef struct {
    tdn_lines rows, columns;
    int rows_first, level;
    size_t channel, step;
    tdn_image from;
    const uint8_t **lines; /* that a row is made of */
    uint8_t *row;          /* a row of the image, and zeros behind it */
    uint8_t *done;         /* rows whose columns are done */
} tdn_resizer;

/* Find the lines of both axes; a code.  The resizer is to be ended in any case. */
int tdn_begin_resize(const tdn_sample *s, int level, tdn_resizer *z);
/* Do what comes before the rows of the result, of an image that has what the lines see; a code. */
int tdn_resize(tdn_resizer *z, const tdn_image *from, size_t channel, size_t step);
void tdn_resize_row(const tdn_resizer *z, int row, uint8_t *to);
void tdn_end_resize(tdn_resizer *z);

/* Pixels on their way through steps; memory of a canvas goes on behind its pixels. */
typedef struct {
    uint8_t *pixels;
    int height, width;
} tdn_canvas;

int tdn_new_canvas(tdn_canvas *c, int64_t height, int64_t width, uint64_t max_pixels);
/* Do a step that is no view; a code. */
int tdn_take_step(const tdn_step *t, int level, uint64_t max_pixels, tdn_canvas *c);

#endif
