/* From the bytes of a JPEG, or from pixels, to pixels in a batch, in one call; and from samples of a sound to another rate.

   All functions may be called from many threads; there is no state but what is read only.  The structures are part of
   the interface: a change of theirs, or of what a function means, changes TDN_ABI. */
#ifndef TORCHDALI_NATIVE_H
#define TORCHDALI_NATIVE_H

#include <stddef.h>
#include <stdint.h>

#define TDN_ABI 13

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
/* Filters of Pillow, which has weights of fixed point, and rounds to bytes after each axis. */
enum {
    TDN_PIL_NEAREST = 1,
    TDN_PIL_BOX = 2,
    TDN_PIL_BILINEAR = 3,
    TDN_PIL_HAMMING = 4,
    TDN_PIL_BICUBIC = 5,
    TDN_PIL_LANCZOS = 6,
    TDN_ROWS_FIRST = 8, /* added to one of them: columns come first otherwise */
    TDN_COARSE = 16     /* added to one of them: weights are those of PyTorch, of 16 bits */
};
enum { TDN_MIRROR = 1, TDN_UPSIDE_DOWN = 2 };

/* Steps on pixels, (height, width, 3) bytes, with the bits of Pillow; `part` and `number` are those of tdn_step. */
enum {
    TDN_VIEW = 1,         /* low, high, size, start, extent (of rows and of columns each), mirror, filter: see tdn_sample */
    TDN_WINDOW = 2,       /* top, left, height, width, border (TDN_CONSTANT ...), a level of each channel */
    TDN_TURN = 3,         /* quarter turns to the left, 1 or 3 */
    TDN_AFFINE = 4,       /* height, width, filter (TDN_PIL_NEAREST, _BILINEAR or _BICUBIC), levels outside; numbers: 6 */
    TDN_PERSPECTIVE = 5,  /* the same; numbers: 8 */
    TDN_BRIGHTNESS = 6,   /* number: the factor, as of the next three */
    TDN_CONTRAST = 7,
    TDN_SATURATION = 8,
    TDN_SHARPNESS = 9,
    TDN_HUE = 10,         /* what is added to a hue, 0 to 255 */
    TDN_GRAY = 11,
    TDN_INVERT = 12,
    TDN_POSTERIZE = 13,   /* bits that are left */
    TDN_SOLARIZE = 14,    /* number: the least level that is inverted */
    TDN_AUTOCONTRAST = 15,
    TDN_EQUALIZE = 16,
    TDN_BLUR = 17,        /* height and width of the window, odd; numbers: deviations along both axes */
    TDN_FILL = 18,        /* top, left, height, width, a level of each channel */
    TDN_CHANNELS = 19     /* the channels that become the first, the second and the third */
};
enum { TDN_CONSTANT = 0, TDN_EDGE = 1, TDN_REFLECT = 2, TDN_SYMMETRIC = 3 };

typedef struct {
    int32_t kind, part[15];
    double number[8];
} tdn_step;
enum { TDN_ROWS = 0, TDN_COLUMNS = 1 };

/* What is the same for all samples of a call. */
typedef struct {
    int32_t abi;       /* TDN_ABI */
    int32_t level;     /* highest level of vector instructions to use, see tdn_level */
    int32_t upright;   /* turn the image as its EXIF block says */
    int32_t fast;      /* libjpeg's faster transform, for images that are not turned */
    int32_t fancy;     /* upsample colors smoothly; else each is repeated, but in images of four channels */
    int32_t shrinking; /* filter of an axis that shrinks */
    int32_t growing;   /* filter of one that grows or stays */
    int32_t antialias; /* stretch the filter where an axis shrinks */
    int32_t outside;   /* pixels beyond the limits of a window: 0 repeat its edge, 1 are left out */
    int32_t planar;    /* write (3, H, W), else (H, W, 3) */
    int32_t item;      /* bytes of a value of the result: 1, 2 or 4 */
    int32_t channels;  /* of the result: 3, or 1 for the first one */
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
    const tdn_step *steps;             /* on the pixels, of which the last one is a view, and is what is written */
    double low[2], high[2];            /* region of the image that is resized; high < low turns it round */
    int32_t size[2];                   /* lines that it becomes */
    int32_t start[2], extent[2];       /* those of them that are written */
    int32_t first[2], last[2];         /* limits of the window from which pixels are read */
    int32_t mirror;                    /* write rows reversed, or from the last one on: TDN_MIRROR, TDN_UPSIDE_DOWN */
    int32_t code;                      /* result */
    int32_t scale;                     /* 1; or 2, 4, 8: the image is decoded at that part of its size, all counts are of it */
    int32_t width;                     /* 0: `data` is a JPEG; else pixels, rows of as many: (length / 3 / width, width, 3) */
    int32_t filter;                    /* 0: those of the recipe; else one of Pillow, and the region is the window */
    int32_t count;                     /* of steps */
} tdn_sample;

typedef struct {
    int32_t height, width; /* as stored */
    int32_t channels;
    int32_t orientation; /* EXIF, 1 to 8 */
} tdn_header;

/* A file in memory. */
typedef struct {
    const uint8_t *data;
    uint64_t length;
    uint8_t *out;      /* where a copy of it goes, or its pixels, (height, width, 3) bytes on a device */
    tdn_header header; /* what tdn_peek finds */
    int32_t code;      /* result */
    int32_t whole;     /* it was read to its end, whatever it is */
    int32_t lot;       /* 0 to 2^24 - 1, by the last bytes of the file alone; -1 if an engine of a device cannot decode it */
    int32_t sampling;  /* values of light for one of color, 16 * horizontal + vertical; 0 if an engine cannot decode it */
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
   their headers; draw their lots if there is a recipe.  Returns how many are not TDN_DONE.  One for which there is no room
   is TDN_TOO_LARGE. */
TDN_EXPORT int tdn_read(const char *names, int count, uint8_t *memory, uint64_t room, tdn_file *found,
                        const tdn_recipe *recipe, uint64_t max_pixels);
/* Read the headers of files that are in memory, of 1, 3 or 4 channels, and draw their lots.  An engine decodes whole files of one baseline scan,
   of 8 bits, gray or YCbCr, with 4:4:4, 4:2:2, 4:4:0 or 4:2:0 values of color, that need not be turned (see `upright` of
   the recipe) and are within the limits. */
TDN_EXPORT void tdn_draw(const tdn_recipe *recipe, uint64_t max_pixels, tdn_file *files, int count);

/* nvJPEG's engine, from the library `file`, which is loaded; for the device that is current.  NULL if it does not work:
   then `code` is nvJPEG's status, -1 if the library cannot be loaded, -2 if it lacks a function, -3 without an engine. */
typedef struct tdn_engine tdn_engine;
TDN_EXPORT tdn_engine *tdn_engine_open(const char *file, int fancy, int states, int *code);
/* Submit a batch to one of the states, in one call, behind which `stream` has the pixels; allocates for `most` images of
   `height` and `width` at once.  Images that the engine refuses are TDN_UNSUPPORTED; the others are DONE, or all of them
   DAMAGED if the call fails: the state serves again.  The memory of files and pixels is the engine's until the stream is
   done, and so is the state.  One thread at a time.  Returns nvJPEG's status. */
TDN_EXPORT int tdn_engine_decode(tdn_engine *engine, int state, tdn_file *images, int count, int most, int height,
                                 int width, void *stream);
/* No state may be in use. */
TDN_EXPORT void tdn_engine_close(tdn_engine *engine);

/* Do `count` samples, one after the other; returns how many are not TDN_DONE. */
TDN_EXPORT int tdn_run(const tdn_recipe *recipe, tdn_sample *samples, int count);

/* The part of an image that is wanted, and where it goes. */
typedef struct {
    int64_t window[4]; /* of the upright image: y, x, height, width */
    int64_t shape[3];  /* of the result: of the window, or of a whole image by an engine */
    int64_t place;     /* of the pixels among those of the call, or of the copy of the file among the copies */
    int64_t index;     /* among the files for an engine; -1 if the image is decoded here */
} tdn_part;
/* How the window of an image is chosen. */
enum { TDN_WHOLE = 0, TDN_GIVEN = 1, TDN_RANDOM = 2 };
typedef struct {
    int32_t kind;     /* the whole image, the window that is in the part already, or a random one */
    int32_t upright;  /* images are turned as their EXIF blocks say */
    int64_t attempts; /* random windows to try before the largest that is allowed */
    double area[2], ratio[2], log_ratio[2]; /* least and greatest share of the area, and width / height */
} tdn_choice;
/* Choose windows, and divide files between an engine, which gets those whose lots are below a number, and this library.
   `key` and `samples`, (count, 2): epoch and record, are those of the random numbers.  `starts` and `ends`, (count, 2) or
   NULL, are regions, those of random windows are written; they become those of the window where that is decoded.
   `totals` are bytes of pixels, bytes of copies and the number of files for the engine. */
TDN_EXPORT void tdn_divide(const tdn_choice *choice, uint64_t key, const uint64_t *samples, const tdn_file *files,
                           tdn_part *parts, int count, int32_t below, double *starts, double *ends, int64_t totals[3]);
/* Decode windows to `pixels`, (height, width, 3) bytes each, and copy the engine's files to `copies`, where `out` points
   afterwards; `code` of each file is the result.  Returns how many are not TDN_DONE. */
TDN_EXPORT int tdn_do_parts(const tdn_recipe *recipe, tdn_file *files, const tdn_part *parts, int count, uint64_t max_pixels,
                            uint8_t *pixels, uint8_t *copies);
/* Resample signals.  `table` has for each of TDN_PLACES places between two samples the weights of the `taps` samples
   around it, half of them before it, and what leads from these to the weights at the next place; zeros fill each up to a
   multiple of 8.  Returns a code. */
TDN_EXPORT int tdn_resample(const tdn_signal *signals, int count, const float *table, int taps, int level);
enum { TDN_PLACES = 32, TDN_WIDEST = 256 };

#endif
