/* Decode mutated JPEGs, resample pixels, and run steps on them: fuzz SEED COUNT FILE...

   The sanitizers (see ../README.md) end the program at the first finding.  The seed of each input is SEED plus its
   number, so `fuzz SEED+N 1 FILE...` repeats input N.  The program also checks that results are equal on all levels of
   vector instructions and with libjpeg's Huffman decoder, and that a repeated call returns the same code. */
#include "native.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library built with TDN_PLAIN. */
int plain_run(const tdn_recipe *recipe, tdn_sample *samples, int count);

typedef struct {
    uint8_t *data;
    size_t length;
} file;

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static file load(const char *name)
{
    FILE *f = fopen(name, "rb");
    if (!f || fseek(f, 0, SEEK_END)) {
        perror(name);
        exit(2);
    }
    file found = {NULL, (size_t)ftell(f)};
    rewind(f);
    found.data = malloc(found.length + 1);
    if (fread(found.data, 1, found.length, f) != found.length)
        exit(2);
    fclose(f);
    return found;
}

/* Return the position of a marker from C0 to FE, or of a random byte if there is none. */
static size_t marker(const file *f, int kind)
{
    size_t found[64], count = 0;
    for (size_t i = 0; i + 1 < f->length && count < 64; i++)
        if (f->data[i] == 0xFF && f->data[i + 1] >= 0xC0 && f->data[i + 1] != 0xFF && (!kind || f->data[i + 1] == kind))
            found[count++] = i;
    return count ? found[draw((uint32_t)count)] : draw((uint32_t)f->length);
}

static void put(file *f, size_t at, int value)
{
    if (at < f->length)
        f->data[at] = (uint8_t)value;
}

static void mutate(file *f, const file *other)
{
    static const uint8_t HARD[] = {0, 1, 2, 3, 4, 0x11, 0x12, 0x21, 0x22, 0x41, 0x44, 0x7F, 0x80, 0xC0, 0xC2, 0xD0, 0xD9, 0xFF};
    size_t at = draw((uint32_t)f->length), n;
    switch (draw(13)) {
    case 0:
        put(f, at, f->data[at] ^ 1 << draw(8));
        break;
    case 1:
        put(f, at, HARD[draw(sizeof HARD)]);
        break;
    case 2: /* in a segment's head */
        put(f, marker(f, 0) + draw(24), HARD[draw(sizeof HARD)]);
        break;
    case 3: /* the frame: size, channels, subsampling */
        put(f, marker(f, draw(2) ? 0xC0 : 0xC2) + 4 + draw(16), HARD[draw(sizeof HARD)]);
        break;
    case 4: /* tables of codes */
        put(f, marker(f, 0xC4) + 2 + draw(180), (int)draw(256));
        break;
    case 5: /* a scan's head, and what follows */
        put(f, marker(f, 0xDA) + 2 + draw(40), (int)draw(256));
        break;
    case 6: /* truncate the file, and end it with a marker */
        f->length = 4 + draw((uint32_t)f->length - 3);
        put(f, f->length - 2, 0xFF);
        put(f, f->length - 1, 0xD9);
        break;
    case 7: /* copy bytes to another position */
        n = draw(64) + 1;
        if (f->length > 2 * n)
            memmove(f->data + draw((uint32_t)(f->length - n)), f->data + draw((uint32_t)(f->length - n)), n);
        break;
    case 8: /* remove bytes */
        n = draw(64) + 1;
        if (f->length > 2 * n) {
            at = draw((uint32_t)(f->length - n));
            memmove(f->data + at, f->data + at + n, f->length - at - n);
            f->length -= n;
        }
        break;
    case 9: /* copy bytes of another file */
        n = draw(400) + 1;
        if (f->length > n && other->length > n)
            memcpy(f->data + draw((uint32_t)(f->length - n)), other->data + draw((uint32_t)(other->length - n)), n);
        break;
    case 10: /* the kind of a segment */
        put(f, marker(f, 0) + 1, 0xC0 + (int)draw(0x3F));
        break;
    case 11: /* the EXIF block */
        put(f, marker(f, 0xE1) + 2 + draw(48), HARD[draw(sizeof HARD)]);
        break;
    default: /* a small image */
        at = marker(f, draw(2) ? 0xC0 : 0xC2);
        put(f, at + 5, 0);
        put(f, at + 7, 0);
    }
}

static double near(int low, int high)
{
    double v = low + (double)draw((uint32_t)(high - low + 1));
    return draw(3) ? v : v + draw(1000) / 1000.0;
}

static double any_number(double low, double high)
{
    static const double HARD[] = {0, 1, -1, 0.5, 1e-9, 1e9, -1e9, 1e300, INFINITY, -INFINITY, NAN};
    return draw(60) ? low + (high - low) * draw(100001) / 100000 : HARD[draw(11)];
}

/* Choose a region of `count` rows or columns, its size after a resize, and the range that is written. */
static int view_of(int32_t *part, int i, int count, int resizes)
{
    int low = (int)draw((uint32_t)count), high = low + 1 + (int)draw((uint32_t)(count - low)), turned = resizes && draw(2);
    int size = resizes ? 1 + (int)draw(90) : high - low, start = (int)draw((uint32_t)size);
    part[i] = turned ? high : low;
    part[2 + i] = turned ? low : high;
    part[4 + i] = size;
    part[6 + i] = start;
    part[8 + i] = 1 + (int)draw((uint32_t)(size - start));
    return part[8 + i];
}

static void make_view(tdn_step *t, int sides[2])
{
    int resizes = (int)draw(2);
    t->kind = TDN_VIEW;
    for (int i = 0; i < 2; i++)
        sides[i] = view_of(t->part, i, sides[i], resizes);
    t->part[10] = (int)draw(4);
    t->part[11] = resizes ? 1 + (int)draw(6) + (draw(2) ? TDN_ROWS_FIRST : 0) : 0;
}

/* Choose a step, and set `sides` to the height and width after the step. */
static void make_step(tdn_step *t, int sides[2])
{
    int32_t *part = t->part;
    memset(t, 0, sizeof *t);
    t->kind = 1 + (int)draw(20);
    for (int i = 0; i < 15; i++)
        part[i] = (int)draw(256);
    for (int i = 0; i < 8; i++)
        t->number[i] = any_number(-0.01, 0.01);
    switch (t->kind) {
    case TDN_VIEW:
        make_view(t, sides);
        break;
    case TDN_WINDOW:
    case TDN_FILL:
        for (int i = 0; i < 2; i++) {
            part[i] = (int)draw(200) - 100;
            part[2 + i] = 1 + (int)draw(150);
            sides[i] = t->kind == TDN_FILL ? sides[i] : part[2 + i];
        }
        part[4] = (int)draw(4);
        break;
    case TDN_TURN:
        part[0] = 1 + 2 * (int)draw(2);
        part[1] = sides[0];
        sides[0] = sides[1];
        sides[1] = part[1];
        break;
    case TDN_AFFINE:
    case TDN_PERSPECTIVE:
        part[2] = 1 + 2 * (int)draw(3);
        for (int i = 0; i < 2; i++) {
            part[i] = sides[i] = draw(2) ? sides[i] : 1 + (int)draw(120);
            t->number[3 * i + i] = any_number(-3, 3);
            t->number[3 * i + 1 - i] = draw(2) ? any_number(-2, 2) : 0;
            t->number[3 * i + 2] = any_number(-100, 100);
        }
        break;
    case TDN_POSTERIZE:
        part[0] = (int)draw(10);
        break;
    case TDN_BLUR:
        part[0] = (int)draw(12) + 1;
        part[1] = (int)draw(3) ? 2 * (int)draw(8) + 1 : (int)draw(40);
        t->number[0] = any_number(0.1, 3);
        t->number[1] = any_number(0.1, 3);
        break;
    case TDN_CHANNELS:
        for (int i = 0; i < 3; i++)
            part[i] = (int)draw(100) ? (int)draw(3) : 3;
        break;
    default:
        t->number[0] = t->kind == TDN_SOLARIZE ? any_number(0, 256) : any_number(0, 3);
    }
    if (draw(100) == 0)
        part[draw(12)] = (int)draw(2) ? (int)draw(1000) - 500 : (int)(draw(0xFFFFFFFF) - 0x7FFFFFFF);
}

/* Check that a lot depends only on the file's bytes, and that only files that end with a complete scan have a lot. */
static void check_lot(const tdn_recipe *r, const file *f, uint64_t codes[8])
{
    tdn_file twice[2] = {{f->data, f->length, NULL, {0}, 0, 0, 0, 0}, {f->data, f->length, NULL, {9, 9, 9, 9}, 9, 9, 9, 9}};
    tdn_header found;
    tdn_draw(r, 1 << 22, twice, 2);
    if (twice[0].lot != twice[1].lot || (twice[0].lot >= 0 && !twice[0].sampling) || twice[0].lot < -1 || twice[0].lot >= 1 << 24)
        abort();
    if (twice[0].lot < 0)
        return;
    codes[6]++;
    if (tdn_peek(f->data, f->length, &found) || memcmp(&found, &twice[0].header, sizeof found)
        || f->data[f->length - 1] != 0xD9 || found.channels == 4)
        abort();
}

/* Check that windows need exactly the promised memory, and that the engine's files are copied. */
static void check_parts(const tdn_recipe *recipe, const file *f, uint64_t codes[8])
{
    tdn_recipe bytes = *recipe, *r = &bytes;
    r->item = 1;
    r->channels = 3;
    r->planar = r->affine = 0;
    r->table = NULL;
    tdn_file files[3] = {{f->data, f->length, NULL, {0}, 0, 0, 0, 0}};
    tdn_part parts[3];
    double regions[2][3][2] = {{{0}}};
    int64_t totals[3];
    tdn_draw(r, 1 << 20, files, 1);
    if (files[0].code)
        return;
    int turned = r->upright && files[0].header.orientation > 4;
    if ((int64_t)files[0].header.height * files[0].header.width > 1 << 20)
        return;
    for (int i = 0; i < 3; i++) {
        int64_t h = turned ? files[0].header.width : files[0].header.height;
        int64_t w = turned ? files[0].header.height : files[0].header.width;
        int64_t y = draw((uint32_t)h), x = draw((uint32_t)w);
        files[i] = files[0];
        parts[i] = (tdn_part){{y, x, 1 + draw((uint32_t)(h - y)), 1 + draw((uint32_t)(w - x))}, {0}, 0, 0};
        if (draw(50) == 0) /* invalid window of the same size */
            parts[i].window[draw(2)] += (int64_t)draw(5000) - 2500;
    }
    double most = any_number(0, 2), widest = any_number(0.01, 9);
    tdn_choice choice = {(int32_t)draw(3), r->upright, draw(12), {most / 9, most}, {widest / 3, widest},
                         {log(widest / 3), log(widest)}};
    uint64_t samples[6] = {0, draw(9), 1, draw(9), 2, draw(9)};
    tdn_divide(&choice, draw(99), samples, files, parts, 3, draw(3) ? 1 << 23 : 0, regions[0][0], regions[1][0], totals);
    for (int i = 0; i < 3 && choice.kind != TDN_GIVEN; i++) {
        int64_t h = turned ? files[0].header.width : files[0].header.height;
        int64_t w = turned ? files[0].header.height : files[0].header.width;
        const int64_t *p = parts[i].window;
        if (p[0] < 0 || p[1] < 0 || p[2] < 1 || p[3] < 1 || p[2] > h - p[0] || p[3] > w - p[1])
            abort();
    }
    uint8_t *pixels = malloc((size_t)totals[0]), *copies = malloc((size_t)totals[1]);
    tdn_do_parts(r, files, parts, 3, 1 << 20, pixels, copies);
    for (int i = 0; i < 3; i++)
        if (parts[i].index >= 0 && (files[i].code || memcmp(files[i].out, f->data, f->length)))
            abort();
    codes[6] += files[0].code == TDN_DONE;
    free(pixels);
    free(copies);
}

static void one(const file *files, int count, uint64_t codes[8])
{
    const file *base = files + draw((uint32_t)count), *other = files + draw((uint32_t)count);
    file f = {malloc(base->length), base->length}; /* exactly this length, so that reading one more byte is a finding */
    memcpy(f.data, base->data, base->length);
    int width = draw(6) ? 0 : 1 + (int)draw(300); /* 0, or use the file's bytes as pixels with this width */
    if (width && f.length / 3 < (size_t)width)
        width = 1;
    if (width)
        f.length -= f.length % (3 * (size_t)width);
    for (int i = width ? 0 : draw(8); i > 0; i--)
        mutate(&f, other);
    file exact = {malloc(f.length), f.length};
    memcpy(exact.data, f.data, f.length);
    free(f.data);
    tdn_header header = {64, 64, 3, 1};
    tdn_peek(exact.data, exact.length, &header);
    if (width)
        header = (tdn_header){(int)(exact.length / 3 / (size_t)width), width, 3, 1};
    int lengths[2] = {header.height, header.width};
    if (header.orientation > 4) {
        lengths[0] = header.width;
        lengths[1] = header.height;
    }
    int scale = width || draw(3) ? 1 : 1 << draw(4);
    for (int i = 0; i < 2; i++)
        lengths[i] = (lengths[i] + scale - 1) / scale;
    tdn_recipe r;
    memset(&r, 0, sizeof r);
    r.abi = TDN_ABI;
    r.upright = draw(4) != 0;
    r.fast = draw(4) == 0;
    r.fancy = draw(2) != 0;
    r.shrinking = (int)draw(3);
    r.growing = (int)draw(3);
    r.antialias = draw(3) != 0;
    r.outside = draw(2) != 0;
    r.planar = draw(2) != 0;
    r.item = 1 << draw(3);
    r.channels = draw(4) ? 3 : 1 + (int)draw(2) * 2;
    r.affine = r.item == 4 && draw(2);
    r.free_values = 1 << 22;
    r.max_scans = 50;
    r.per_byte = 3 << 10;
    static uint32_t table[768]; /* different values for all bytes and channels, so that results differ if pixels differ */
    for (uint32_t i = 0; i < 768; i++)
        table[i] = i * 0x9E3779B1u;
    r.table = r.item == 1 && draw(2) ? NULL : table;
    check_lot(&r, &exact, codes);
    check_parts(&r, &exact, codes);
    tdn_sample s;
    memset(&s, 0, sizeof s);
    s.data = exact.data;
    s.length = exact.length;
    s.max_pixels = 1 << 22;
    int identity = draw(4) == 0, whole = lengths[0] < 4096 && lengths[1] < 4096 && draw(3) == 0;
    for (int i = 0; i < 2; i++) {
        int first = (int)draw((uint32_t)lengths[i]), last = first + 1 + (int)draw((uint32_t)(lengths[i] - first));
        if (whole) {
            first = 0;
            last = lengths[i];
        }
        s.first[i] = first;
        s.last[i] = last;
        s.low[i] = identity ? first : near(first - (int)draw(3), last);
        s.high[i] = identity ? last : near(first, last + (int)draw(3));
        s.size[i] = identity ? last - first : 1 + (int)draw(80);
        s.start[i] = whole || draw(2) ? 0 : (int)draw((uint32_t)s.size[i]);
        s.extent[i] = s.size[i] - s.start[i];
        if (draw(50) == 0) { /* invalid values */
            int *values[] = {s.size, s.start, s.extent, s.first, s.last};
            values[draw(4)][i] = (int)draw(1000) - 500;
        }
    }
    s.mirror = (int)draw(4);
    s.filter = draw(2) ? 0 : (int)draw(8) + (draw(2) ? TDN_ROWS_FIRST : 0);
    s.scale = draw(50) ? scale : (int)draw(20) - 5;
    s.width = width && draw(50) ? width : (int)draw(50) ? 0 : (int)draw(400) - 100;
    tdn_step steps[6];
    int sides[2] = {s.extent[0], s.extent[1]}, usual = sides[0] > 0 && sides[1] > 0 && sides[0] < 3000 && sides[1] < 3000;
    if (usual && draw(2)) {
        s.count = 1 + (int)draw(6);
        s.steps = steps;
        for (int i = 0; i < s.count - 1; i++)
            make_step(steps + i, sides);
        memset(steps + s.count - 1, 0, sizeof *steps);
        make_view(steps + s.count - 1, sides);
    }
    size_t bytes = (size_t)r.item * 3 * (size_t)(sides[0] > 0 ? sides[0] : 1) * (size_t)(sides[1] > 0 ? sides[1] : 1);
    if (bytes > (size_t)1 << 28) { /* the header claims an image of gigabytes */
        s.extent[0] = s.extent[1] = 1;
        s.count = 0;
        bytes = (size_t)r.item * 3;
    }
    uint8_t *out[2] = {malloc(bytes), malloc(bytes)};
    int code = -1;
    for (int pass = 0; pass < 4; pass++) {
        int again = pass > 0;
        r.level = pass == 2 ? 99 : pass;
        s.out = out[again];
        memset(out[again], 0xA5, bytes);
        (pass < 3 ? tdn_run : plain_run)(&r, &s, 1);
        if (pass == 3 && code == TDN_DAMAGED && s.code != code && (s.code == TDN_DONE || s.count)) {
            codes[7]++; /* libjpeg doesn't warn about some damage */
            break;
        }
        if (again && (s.code != code || (code == TDN_DONE && memcmp(out[0], out[1], bytes)))) {
            fprintf(stderr, "codes %d and %d, or other pixels, in pass %d\n", code, s.code, pass);
            abort();
        }
        code = s.code;
    }
    codes[code]++;
    free(out[0]);
    free(out[1]);
    free(exact.data);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "usage: %s SEED COUNT FILE...\n", argv[0]), 2;
    uint64_t seed = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10), codes[8] = {0};
    file *files = malloc(sizeof *files * (size_t)(argc - 3));
    for (int i = 3; i < argc; i++)
        files[i - 3] = load(argv[i]);
    for (uint64_t i = 0; i < count; i++) {
        state = (seed + i) * 0xD1342543DE82EF95u;
        if (i % 20000 == 0)
            fprintf(stderr, "seed %llu\n", (unsigned long long)(seed + i));
        one(files, argc - 3, codes);
    }
    printf("%llu inputs: done %llu, unsupported %llu, damaged %llu, too large %llu, no memory %llu, invalid %llu; "
           "damaged, and not for libjpeg %llu; for an engine %llu\n",
           (unsigned long long)count, (unsigned long long)codes[0], (unsigned long long)codes[1],
           (unsigned long long)codes[2], (unsigned long long)codes[3], (unsigned long long)codes[4],
           (unsigned long long)codes[5], (unsigned long long)codes[7], (unsigned long long)codes[6]);
    for (int i = 3; i < argc; i++)
        free(files[i - 3].data);
    free(files);
    return 0;
}
