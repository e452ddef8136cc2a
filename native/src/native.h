/* From the bytes of a JPEG, or from pixels, to pixels in a batch, in one call; and from samples of a sound to another rate.

   All functions may be called from many threads; there is no state but what is read only.  The structures are part of
   the interface: a change of theirs, or of what a function means, changes TDN_ABI. */
#ifndef TORCHDALI_NATIVE_H
#define TORCHDALI_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#define TDN_ABI 8

#if defined(_WIN32)
#define TDN_EXPORT __declspec(dllexport)
#else
#define TDN_EXPORT __attribute__((visibility("default")))
#endif

/* What became of a sample.  All but TDN_DONE mean that the caller has to do it in another way; nothing is said of why
   in words, and the memory for the result may have been written to. */
enum {
    TDN_DONE = 0,
    TDN_UNSUPPORTED = 1, /* no JPEG, or a kind that is not handled */
    TDN_DAMAGED = 2,     /* libjpeg fails, or warns */
    TDN_TOO_LARGE = 3,   /* beyond the limits */
    TDN_NO_MEMORY = 4,
    TDN_INVALID = 5      /* arguments that make no sense */
};

enum { TDN_NEAREST = 0, TDN_LINEAR = 1, TDN_CUBIC = 2 };
enum { TDN_ROWS = 0, TDN_COLUMNS = 1 };

/* What is the same for all samples of a call. */
typedef struct {
    int32_t abi;       /* TDN_ABI */
    int32_t level;     /* highest level of vector instructions to use, see tdn_level */
    int32_t upright;   /* turn the image as its EXIF block says */
    int32_t fast;      /* libjpeg's faster transform, for images that are not turned */
    int32_t shrinking; /* filter of an axis that shrinks */
    int32_t growing;   /* filter of one that grows or stays */
    int32_t antialias; /* stretch the filter where an axis shrinks */
    int32_t outside;   /* pixels beyond the limits of a window: 0 repeat its edge, 1 are left out */
    int32_t planar;    /* write (3, H, W), else (H, W, 3) */
    int32_t item;      /* bytes of a value of the result: 1, 2 or 4 */
    int32_t affine;    /* values are float32: level * scale + shift; else they are those of `table` */
    float scale[3];
    float shift[3];
    int32_t max_scans; /* of a progressive file */
    const void *table;    /* (3, 256) values of the result, a level of a channel each; NULL: the levels, as bytes */
    uint64_t free_values; /* a file may claim as many values (H * W * C) whatever its size, */
    uint64_t per_byte;    /* and else as many for each of its bytes */
} tdn_recipe;

/* One sample.  Arrays have an item for rows and one for columns, of the upright image. */
typedef struct {
    const uint8_t *data;
    uint64_t length;
    uint64_t max_pixels;               /* that the image may have, as its header claims */
    void *out;
    double low[2], high[2];            /* region of the image that is resized; high < low turns it round */
    int32_t size[2];                   /* lines that it becomes */
    int32_t start[2], extent[2];       /* those of them that are written */
    int32_t first[2], last[2];         /* limits of the window from which pixels are read */
    int32_t mirror;                    /* reverse the rows that are written */
    int32_t code;                      /* result */
    int32_t scale;                     /* 1; or 2, 4, 8: the image is decoded at that part of its size, all counts are of it */
    int32_t width;                     /* 0: `data` is a JPEG; else pixels, rows of as many: (length / 3 / width, width, 3) */
} tdn_sample;

typedef struct {
    int32_t height, width; /* as stored */
    int32_t channels;
    int32_t orientation; /* EXIF, 1 to 8 */
} tdn_header;

/* A file that was read: where it lies in the memory given, and what tdn_peek finds there. */
typedef struct {
    uint64_t place, length;
    tdn_header header;
    int32_t code;
    int32_t whole; /* it was read to its end, whatever it is */
} tdn_file;

/* Samples to be resampled: out[i] lies at in[i * ratio]. */
typedef struct {
    const float *in; /* (samples, channels) */
    float *out;      /* (length, channels) */
    uint64_t samples, length, channels;
    double ratio;
} tdn_signal;

TDN_EXPORT int tdn_abi(void);
/* Version of libjpeg-turbo it was built with: 2001005 is 2.1.5. */
TDN_EXPORT int tdn_libjpeg(void);
/* Level that is used where `wanted` is asked for: 0 what the compiler takes for granted, 1 AVX2, 2 AVX-512. */
TDN_EXPORT int tdn_level(int wanted);
/* Read a header; a code. */
TDN_EXPORT int tdn_peek(const uint8_t *data, uint64_t length, tdn_header *found);
/* Read `count` plain files, whose names follow one another and end with a zero each, into `room` bytes of memory, and
   their headers; returns how many are not TDN_DONE.  One for which there is no room is TDN_TOO_LARGE. */
TDN_EXPORT int tdn_read(const char *names, int count, uint8_t *memory, uint64_t room, tdn_file *found);
/* Do `count` samples, one after the other; returns how many are not TDN_DONE. */
TDN_EXPORT int tdn_run(const tdn_recipe *recipe, tdn_sample *samples, int count);
/* Resample signals.  `table` has for each of TDN_PLACES places between two samples the weights of the `taps` samples
   around it, half of them before it, and what leads from these to the weights at the next place; zeros fill each up to a
   multiple of 8.  Returns a code. */
TDN_EXPORT int tdn_resample(const tdn_signal *signals, int count, const float *table, int taps, int level);
enum { TDN_PLACES = 32, TDN_WIDEST = 256 };

#endif
