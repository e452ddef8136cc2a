/* Decode JPEGs, crop, resize and convert images, and write them to a batch, in one call; resample audio.

   All functions are thread-safe, unless their comment says otherwise: the library has no mutable state.  A change of a
   structure, or of a function's meaning, must change TDN_ABI.

   The engine is a GPU's hardware decoder for JPEGs.  A file's lot is a hash that decides whether the engine decodes it.
   The levels of an image are its channels' 8-bit values. */
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

/* Result codes of a sample.  Unless the code is TDN_DONE, the caller must process the sample without this library; the
   memory for the result may have been overwritten. */
enum {
    TDN_DONE = 0,
    TDN_UNSUPPORTED = 1, /* not a JPEG, or an unsupported kind of JPEG */
    TDN_DAMAGED = 2,     /* libjpeg failed or warned */
    TDN_TOO_LARGE = 3,   /* above a limit */
    TDN_NO_MEMORY = 4,
    TDN_INVALID = 5      /* invalid arguments */
};

enum { TDN_NEAREST = 0, TDN_LINEAR = 1, TDN_CUBIC = 2 };
/* Filters of Pillow, which uses fixed-point weights and rounds to bytes after each axis. */
enum {
    TDN_PIL_NEAREST = 1,
    TDN_PIL_BOX = 2,
    TDN_PIL_BILINEAR = 3,
    TDN_PIL_HAMMING = 4,
    TDN_PIL_BICUBIC = 5,
    TDN_PIL_LANCZOS = 6,
    TDN_ROWS_FIRST = 8, /* flag, added to a filter: resize rows before columns */
    TDN_COARSE = 16     /* flag, added to a filter: PyTorch's 16-bit weights */
};
enum { TDN_MIRROR = 1, TDN_UPSIDE_DOWN = 2 };

/* Kinds of steps on pixels, (height, width, 3) bytes, bit-identical to Pillow.  Each comment lists the values in the
   fields `part` and `number` of tdn_step. */
enum {
    TDN_VIEW = 1,         /* low, high, size, start, extent (for rows and columns), mirror, filter: see tdn_sample */
    TDN_WINDOW = 2,       /* top, left, height, width, border (TDN_CONSTANT ...), fill value of each channel */
    TDN_TURN = 3,         /* number of quarter turns to the left, 1 or 3 */
    TDN_AFFINE = 4,       /* height, width, filter (TDN_PIL_NEAREST, _BILINEAR or _BICUBIC), fill values; 6 numbers */
    TDN_PERSPECTIVE = 5,  /* the same; 8 numbers */
    TDN_BRIGHTNESS = 6,   /* number: factor; also for the next three */
    TDN_CONTRAST = 7,
    TDN_SATURATION = 8,
    TDN_SHARPNESS = 9,
    TDN_HUE = 10,         /* number to add to the hue, 0 to 255 */
    TDN_GRAY = 11,
    TDN_INVERT = 12,
    TDN_POSTERIZE = 13,   /* number of bits that are kept */
    TDN_SOLARIZE = 14,    /* number: smallest value that is inverted */
    TDN_AUTOCONTRAST = 15,
    TDN_EQUALIZE = 16,
    TDN_BLUR = 17,        /* height and width of the window, odd; numbers: standard deviations along both axes */
    TDN_FILL = 18,        /* top, left, height, width, fill value of each channel */
    TDN_CHANNELS = 19     /* source channels of the first, second and third channel */
};
enum { TDN_CONSTANT = 0, TDN_EDGE = 1, TDN_REFLECT = 2, TDN_SYMMETRIC = 3 };

typedef struct {
    int32_t kind, part[15];
    double number[8];
} tdn_step;
enum { TDN_ROWS = 0, TDN_COLUMNS = 1 };

/* Options for all samples of a call. */
typedef struct {
    int32_t abi;       /* TDN_ABI */
    int32_t level;     /* maximum level of vector instructions; see tdn_level */
    int32_t upright;   /* 1: turn images according to their EXIF orientation */
    int32_t fast;      /* 1: libjpeg's faster inverse transform, for images that aren't turned */
    int32_t fancy;     /* 1: interpolate chroma; 0: repeat chroma samples, except in images of four channels */
    int32_t shrinking; /* filter of axes that shrink */
    int32_t growing;   /* filter of all other axes */
    int32_t antialias; /* 1: widen the filter of axes that shrink */
    int32_t outside;   /* pixels outside of a window: 0: repeat its edge, 1: ignore them */
    int32_t planar;    /* 1: write (channels, H, W), 0: write (H, W, channels) */
    int32_t item;      /* bytes per value of the result: 1, 2 or 4 */
    int32_t channels;  /* of the result: 3, or 1 for only the first channel */
    int32_t affine;    /* 1: the result is level * scale + shift in float32, 0: it is looked up in `table` */
    float scale[3];
    float shift[3];
    int32_t max_scans; /* maximum number of scans of a progressive JPEG */
    const void *table;    /* (3, 256): result for each level of each channel; NULL: the levels, as bytes */
    uint64_t free_values; /* number of values (H * W * C) that a file of any size may have */
    uint64_t per_byte;    /* maximum number of values per byte, for files with more values */
} tdn_recipe;

/* One sample.  Arrays have one item for rows and one for columns.  Unless noted, units are pixels of the upright image. */
typedef struct {
    const uint8_t *data;
    uint64_t length;
    uint64_t max_pixels;               /* maximum number of pixels, compared with the image's header */
    void *out;
    const tdn_step *steps;             /* `count` steps on the pixels; the last step must be TDN_VIEW */
    double low[2], high[2];            /* region that is resized; high < low mirrors the axis */
    int32_t size[2];                   /* number of rows and columns to which the region is resized */
    int32_t start[2], extent[2];       /* rows and columns of the resized region that are written */
    int32_t first[2], last[2];         /* start and end of the window from which pixels are read */
    int32_t mirror;                    /* TDN_MIRROR: reverse each row, TDN_UPSIDE_DOWN: reverse the order of rows */
    int32_t code;                      /* result code */
    int32_t scale;                     /* 1, 2, 4 or 8: decode at 1 / scale of the size; other fields count its pixels */
    int32_t width;                     /* 0: `data` is a JPEG; else it is pixels, (length / 3 / width, width, 3) */
    int32_t filter;                    /* 0: the recipe's filters; else a filter of Pillow, and region and window are equal */
    int32_t count;                     /* number of steps */
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
    uint8_t *out;      /* target of a copy of the file, or of the pixels, (height, width, 3) bytes on a device */
    tdn_header header; /* result of tdn_peek */
    int32_t code;      /* result code */
    int32_t whole;     /* 1: the whole file was read, even if it is not a JPEG */
    int32_t lot;       /* hash of the file's last bytes, 0 to 2^24 - 1; -1 if the engine can't decode the file */
    int32_t sampling;  /* luma samples per chroma sample, 16 * horizontal + vertical; 0 if the engine can't decode it */
} tdn_file;

/* A signal to resample: out[i] is at the position i * ratio of `in`. */
typedef struct {
    const float *in; /* (samples, channels) */
    float *out;      /* (length, channels) */
    uint64_t samples, length, channels;
    double ratio;
} tdn_signal;

TDN_EXPORT int tdn_abi(void);
/* Return the version of libjpeg-turbo with which the library was built: 2001005 is 2.1.5. */
TDN_EXPORT int tdn_libjpeg(void);
/* Return the level of vector instructions that is used if `wanted` is the maximum: 0 (the compiler's default), 1 (AVX2) or
   2 (AVX-512). */
TDN_EXPORT int tdn_level(int wanted);
/* Read the header of a JPEG, and return a result code. */
TDN_EXPORT int tdn_peek(const uint8_t *data, uint64_t length, tdn_header *found);
/* Read `count` regular files into `room` bytes of memory, and read their headers; with a recipe, also compute their lots.
   `names` contains zero-terminated names, one after the other.  A file that doesn't fit is TDN_TOO_LARGE.  Return the
   number of files that are not TDN_DONE. */
TDN_EXPORT int tdn_read(const char *names, int count, uint8_t *memory, uint64_t room, tdn_file *found,
                        const tdn_recipe *recipe, uint64_t max_pixels);
/* Read the headers of files in memory, and compute their lots.  Files must have 1, 3 or 4 channels.  The engine
   decodes only complete files with one baseline scan of 8 bits, gray or YCbCr with 4:4:4, 4:2:2, 4:4:0 or 4:2:0 chroma.
   Such files must not need turning (see `upright` of the recipe), and must be within the limits. */
TDN_EXPORT void tdn_draw(const tdn_recipe *recipe, uint64_t max_pixels, tdn_file *files, int count);

/* Load nvJPEG from the library `file`, and open the current device's engine.  NULL on failure: `code` is then nvJPEG's
   status, -1 if the library cannot be loaded, -2 if it lacks a function, or -3 if the device has no engine.  `states` is
   the number of batches that can be decoded at the same time. */
typedef struct tdn_engine tdn_engine;
TDN_EXPORT tdn_engine *tdn_engine_open(const char *file, int fancy, int states, int *code);
/* Submit a batch to one of the engine's states; later work on `stream` can use the pixels.  The state's memory is
   allocated for `most` images of `height` and `width`.  Images that the engine refuses are TDN_UNSUPPORTED, all others
   TDN_DONE; if the call fails, all are TDN_DAMAGED, and the state can be used again.  The caller must not change files,
   pixels or the state until the stream is done.  Not thread-safe.  Returns nvJPEG's status. */
TDN_EXPORT int tdn_engine_decode(tdn_engine *engine, int state, tdn_file *images, int count, int most, int height,
                                 int width, void *stream);
/* Close the engine; no state may be in use. */
TDN_EXPORT void tdn_engine_close(tdn_engine *engine);

/* Process `count` samples, one after the other; return the number of samples that are not TDN_DONE. */
TDN_EXPORT int tdn_run(const tdn_recipe *recipe, tdn_sample *samples, int count);

/* The window of an image that is needed, and where the result is written. */
typedef struct {
    int64_t window[4]; /* in the upright image: y, x, height, width */
    int64_t shape[3];  /* shape of the result: the window's, or the whole image's if the engine decodes it */
    int64_t place;     /* offset of the result in `pixels`, or of the file's copy in `copies`: see tdn_do_parts */
    int64_t index;     /* index among the files for the engine; -1 if this library decodes the image */
} tdn_part;
/* Choices of a window: the whole image, the window that `tdn_part` already has, or a random window. */
enum { TDN_WHOLE = 0, TDN_GIVEN = 1, TDN_RANDOM = 2 };
typedef struct {
    int32_t kind;     /* TDN_WHOLE, TDN_GIVEN or TDN_RANDOM */
    int32_t upright;  /* 1: images are turned according to their EXIF orientation */
    int64_t attempts; /* maximum number of random windows; if none fits, the largest allowed window is used */
    double area[2], ratio[2], log_ratio[2]; /* minimum and maximum of the area (as a fraction) and of width / height */
} tdn_choice;
/* Choose windows, and divide the files: the engine decodes files whose lot is less than `below`, this library decodes the
   others.  The random numbers depend on `key` and on `samples`, (count, 2): epoch and record.  `starts` and `ends`,
   (count, 2) or NULL, are regions in the images; for TDN_RANDOM, they are set to the windows.  If this library decodes
   an image, its region is made relative to its window.  `totals` receives the bytes of pixels, the bytes of copies, and
   the number of files for the engine. */
TDN_EXPORT void tdn_divide(const tdn_choice *choice, uint64_t key, const uint64_t *samples, const tdn_file *files,
                           tdn_part *parts, int count, int32_t below, double *starts, double *ends, int64_t totals[3]);
/* Decode windows to `pixels`, (height, width, 3) bytes each.  Copy the engine's files to `copies`, and let their `out`
   point to the copies.  Set the `code` of each file, and return the number of files that are not TDN_DONE. */
TDN_EXPORT int tdn_do_parts(const tdn_recipe *recipe, tdn_file *files, const tdn_part *parts, int count, uint64_t max_pixels,
                            uint8_t *pixels, uint8_t *copies);
/* Resample signals, and return a result code.  `table` has two rows for each of TDN_PLACES positions between two samples:
   the weights of the `taps` samples around the position (half of them before it), and the differences to the weights of
   the next position.  Each row is padded with zeros to a multiple of 8. */
TDN_EXPORT int tdn_resample(const tdn_signal *signals, int count, const float *table, int taps, int level);
enum { TDN_PLACES = 32, TDN_WIDEST = 256 };

#endif
