/* Huffman decoding of baseline scans, in the place of libjpeg's own, which takes most of the time of an image.

   An entry of a table is a coefficient with its code: one look finds how many bits both have, how many zeros come
   before it and its value.  Blocks beside a window pass with several coefficients a look, and nothing is stored.
   Whatever libjpeg would warn of, or is silent about though the standard forbids it, ends the decoding of the image. */

/* The beginning of libjpeg's interface between its parts, as in libjpeg-turbo 2.1 to 3.1; jpeglib.h leaves it undefined. */
struct jpeg_entropy_decoder {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
};

#define LOOK 11          /* bits that are looked at */
#define END_OF_BLOCK 128 /* advance */

typedef struct {
    uint8_t length, advance; /* bits of code and value, places to the next coefficient */
    int16_t value;
    /* Where the value does not fit: length 0, the symbol, the length of the code; where the code does not, zeros. */
} entry;

typedef struct {
    entry one[1 << LOOK];
    uint8_t passed[1 << LOOK][2]; /* length and advance of as many coefficients as fit */
    uint32_t limit[18];           /* codes of this length, left in 16 bits, are below it */
    int32_t offset[17];           /* from a code of this length to its place among the symbols */
    uint8_t symbols[256];
} huffman;

typedef struct {
    const uint8_t *at, *end;
    uint64_t bits; /* the next ones, from the highest on */
    int count;     /* how many */
    int made_up;   /* how many of them are zeros, since there are no more */
} reader;

typedef struct {
    reader in;
    const uint8_t *begin;
    int32_t level[MAX_COMPS_IN_SCAN]; /* of the last block */
    int dc_only[MAX_COMPS_IN_SCAN];
    int columns, column, first, last; /* units in a row; the next one; those that are shown, with both ends */
    int interval, left, restart;      /* units between restart markers, those until the next, and its number */
    huffman dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
} entropy;

static const uint8_t ZIGZAG[64 + END_OF_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    /* and zeros: what is written beyond the end goes where the first coefficient comes last */
};

static inline int extend(uint32_t bits, int size)
{
    return (int)bits - (bits >> (size - 1) & 1 ? 0 : (1 << size) - 1);
}

/* Make the tables of one code; 0 if it is none. */
static int make_huffman(const JHUFF_TBL *from, int ac, int passing, huffman *h)
{
    uint32_t code = 0, place = 0;
    if (!from)
        return 0;
    memcpy(h->symbols, from->huffval, sizeof h->symbols);
    memset(h->one, 0, sizeof h->one);
    for (int n = 1; n <= 16; n++, code <<= 1) {
        h->offset[n] = (int32_t)place - (int32_t)code;
        for (int i = 0; i < from->bits[n]; i++, code++, place++) {
            if (place > 255 || code >> n)
                return 0;
            int symbol = from->huffval[place], size = symbol & 15, zeros = symbol >> 4;
            if (!ac && symbol > 15)
                return 0;
            if (n > LOOK)
                continue;
            int over = LOOK - n, fits = size <= over;
            entry *to = h->one + (code << over);
            for (uint32_t k = 0; k < 1u << over; k++) {
                int advance = ac && !size && zeros < 15 ? END_OF_BLOCK : zeros + 1;
                int value = fits && size ? extend(k >> (over - size), size) : 0;
                to[k] = fits ? (entry){(uint8_t)(n + size), (uint8_t)advance, (int16_t)value}
                             : (entry){0, (uint8_t)symbol, (int16_t)n};
            }
        }
        h->limit[n] = code << (16 - n);
    }
    h->limit[17] = UINT32_MAX;
    for (uint32_t k = 0; passing && k < 1 << LOOK; k++) {
        /* From the first 32 places on, all but the last of these coefficients lie in the block. */
        int length = h->one[k].length, advance = h->one[k].advance;
        while (length && advance < 32) {
            const entry *next = h->one + ((k << length) & ((1 << LOOK) - 1));
            if (!next->length || length + next->length > LOOK)
                break;
            length += next->length;
            advance += next->advance;
        }
        h->passed[k][0] = (uint8_t)length;
        h->passed[k][1] = (uint8_t)advance;
    }
    return 1;
}

/* Fill up to 56 bits or more. */
static void refill_slowly(reader *r)
{
    for (; r->count < 56; r->count += 8) {
        uint64_t byte = 0;
        if (r->at < r->end && *r->at != 0xFF) {
            byte = *r->at++;
        } else if (r->end - r->at > 1 && r->at[1] == 0) {
            byte = 0xFF;
            r->at += 2;
        } else {
            r->made_up += 8;
        }
        r->bits |= byte << (56 - r->count);
    }
}

static inline void refill(reader *r)
{
    if (r->end - r->at >= 8) {
        uint64_t next = 0;
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(&next, r->at, 8);
        next = __builtin_bswap64(next);
#else
        for (int i = 0; i < 8; i++)
            next = next << 8 | r->at[i];
#endif
        if (!((~next - 0x0101010101010101) & next & 0x8080808080808080)) { /* no byte is FF */
            int bytes = (63 - r->count) >> 3;
            r->bits |= next >> r->count;
            r->count += 8 * bytes;
            r->at += bytes;
            return;
        }
    }
    refill_slowly(r);
}

static inline void drop(reader *r, int count)
{
    r->bits <<= count;
    r->count -= count;
}

/* Take a symbol and its value, where one look was not enough; the value, or nothing if there is no such code. */
static int take_slowly(reader *r, const huffman *h, int *symbol, int *value)
{
    uint32_t look = (uint32_t)(r->bits >> 48);
    entry e = h->one[look >> (16 - LOOK)];
    int length = e.value;
    *symbol = e.advance;
    if (!length) {
        length = LOOK + 1;
        while (look >= h->limit[length])
            length++;
        if (length > 16)
            return 0;
        *symbol = h->symbols[((int32_t)(look >> (16 - length)) + h->offset[length]) & 255];
    }
    drop(r, length);
    int size = *symbol & 15;
    *value = size ? extend((uint32_t)(r->bits >> (64 - size)), size) : 0;
    drop(r, size);
    return 1;
}

/* Take a coefficient, or the end of the block, for which one look is not enough; the place after it, 0 if it is damaged. */
static int take_one_slowly(reader *in, const huffman *h, int k, JCOEF *block)
{
    int symbol, value;
    refill(in);
    if (!take_slowly(in, h, &symbol, &value))
        return 0;
    k += !(symbol & 15) && symbol != 0xF0 ? END_OF_BLOCK : (symbol >> 4) + 1;
    if (block)
        block[ZIGZAG[k - 1]] = (JCOEF)value;
    return k;
}

/* Decode the coefficients of a block after the first; 0 if they are damaged. */
static int take_block(reader *in, const huffman *h, JCOEF *block)
{
    int k = 1;
    while (k && k < DCTSIZE2) {
        refill(in); /* 56 bits, which are enough for a few looks with the state in registers */
        uint64_t bits = in->bits;
        int count = in->count, length = 1;
        for (int i = 0; i < 56 / LOOK && k < DCTSIZE2; i++) {
            entry e = h->one[bits >> (64 - LOOK)];
            length = e.length;
            if (!length)
                break;
            bits <<= length;
            count -= length;
            k += e.advance;
            block[ZIGZAG[k - 1]] = e.value;
        }
        in->bits = bits;
        in->count = count;
        if (!length)
            k = take_one_slowly(in, h, k, block);
    }
    return k == DCTSIZE2 || k > END_OF_BLOCK;
}

/* As take_block, without the values. */
static int pass_block(reader *in, const huffman *h)
{
    int k = 1;
    while (k && k < DCTSIZE2) {
        refill(in);
        uint64_t bits = in->bits;
        int count = in->count, length = 1;
        for (int i = 0; i < 56 / LOOK && k < DCTSIZE2; i++) {
            uint32_t look = (uint32_t)(bits >> (64 - LOOK));
            length = k <= 32 ? h->passed[look][0] : h->one[look].length;
            if (!length)
                break;
            bits <<= length;
            count -= length;
            k += k <= 32 ? h->passed[look][1] : h->one[look].advance;
        }
        in->bits = bits;
        in->count = count;
        if (!length)
            k = take_one_slowly(in, h, k, NULL);
    }
    return k == DCTSIZE2 || k > END_OF_BLOCK;
}

/* Go back to the first byte of which no bit was used; 0 if bits were used that are not there. */
static int give_back(entropy *e)
{
    reader *r = &e->in;
    int bytes = (r->count - r->made_up) / 8;
    if (r->count < r->made_up)
        return 0;
    for (; bytes; bytes--) {
        r->at--;
        if (!*r->at && r->at > e->begin && r->at[-1] == 0xFF)
            r->at--;
    }
    r->bits = 0;
    r->count = r->made_up = 0;
    return 1;
}

/* Pass a restart marker; 0 if there is none. */
static int take_restart(entropy *e)
{
    reader *r = &e->in;
    if (!give_back(e) || r->end - r->at < 2 || r->at[0] != 0xFF || r->at[1] != 0xD0 + e->restart)
        return 0;
    r->at += 2;
    e->restart = (e->restart + 1) & 7;
    e->left = e->interval;
    memset(e->level, 0, sizeof e->level);
    return 1;
}

/* Decode the blocks of a unit; libjpeg has set them to zeros, or gives none where rows are skipped. */
static boolean decode_unit(j_decompress_ptr c, JBLOCKROW *blocks)
{
    entropy *e = c->client_data;
    reader *r = &e->in;
    int shown = blocks && e->column >= e->first && e->column <= e->last;
    e->column = e->column + 1 < e->columns ? e->column + 1 : 0;
    if (e->interval && !e->left && !take_restart(e))
        c->err->error_exit((j_common_ptr)c);
    e->left--;
    for (int i = 0; i < c->blocks_in_MCU; i++) {
        int member = c->MCU_membership[i], symbol, value;
        const jpeg_component_info *of = c->cur_comp_info[member];
        const huffman *dc = e->dc + of->dc_tbl_no, *ac = e->ac + of->ac_tbl_no;
        JCOEF *block = shown ? *blocks[i] : NULL;
        if (r->count < 32)
            refill(r);
        entry one = dc->one[r->bits >> (64 - LOOK)];
        value = one.value;
        if (one.length)
            drop(r, one.length);
        else if (!take_slowly(r, dc, &symbol, &value))
            c->err->error_exit((j_common_ptr)c);
        value = (int32_t)((uint32_t)e->level[member] + (uint32_t)value);
        e->level[member] = value;
        if (!(block && !e->dc_only[member] ? take_block(r, ac, block) : pass_block(r, ac)))
            c->err->error_exit((j_common_ptr)c);
        if (block)
            block[0] = (JCOEF)value; /* now: the end of the block has been written here */
    }
    if (r->count < r->made_up)
        c->err->error_exit((j_common_ptr)c);
    return TRUE;
}

/* Decode the scan here, after jpeg_start_decompress; NULL if it is left to libjpeg.

   `left` and `width` are the columns of pixels that are shown; some rows are passed where `passing`. */
static entropy *take_over(j_decompress_ptr c, int passing, int left, int width)
{
#if defined(TDN_PLAIN) || LIBJPEG_TURBO_VERSION_NUMBER >= 4000000
    return NULL;
#endif
    if (jpeg_has_multiple_scans(c) || c->progressive_mode || c->arith_code)
        return NULL;
    entropy *e = c->mem->alloc_large((j_common_ptr)c, JPOOL_IMAGE, sizeof *e);
    unsigned made[2] = {0, 0};
    int single = c->comps_in_scan == 1, across = single ? 1 : c->max_h_samp_factor;
    for (int i = 0; i < c->comps_in_scan; i++) {
        const jpeg_component_info *of = c->cur_comp_info[i];
        int dc = of->dc_tbl_no, ac = of->ac_tbl_no;
#if JPEG_LIB_VERSION >= 70
        e->dc_only[i] = of->DCT_h_scaled_size == 1;
#else
        e->dc_only[i] = of->DCT_scaled_size == 1;
#endif
        passing |= e->dc_only[i];
        if (!(made[0] >> dc & 1) && !make_huffman(c->dc_huff_tbl_ptrs[dc], 0, 0, e->dc + dc))
            return NULL;
        if (!(made[1] >> ac & 1) && !make_huffman(c->ac_huff_tbl_ptrs[ac], 1, passing, e->ac + ac))
            return NULL;
        made[0] |= 1u << dc;
        made[1] |= 1u << ac;
        e->level[i] = 0;
    }
    int unit = across * (8 / (int)c->scale_denom);
    e->begin = c->src->next_input_byte;
    e->in = (reader){e->begin, e->begin + c->src->bytes_in_buffer, 0, 0, 0};
    e->columns = (int)c->MCUs_per_row;
    e->column = e->restart = 0;
    e->first = left / unit - 1; /* one more on each side, which is decoded in vain */
    e->last = (left + width) / unit + 1;
    e->interval = e->left = (int)c->restart_interval;
    c->client_data = e;
    c->entropy->decode_mcu = decode_unit;
    return e;
}

/* Let libjpeg go on after the scan; 0 if no marker follows it. */
static int hand_back(j_decompress_ptr c, entropy *e)
{
    if (!give_back(e) || e->in.at == e->in.end || *e->in.at != 0xFF)
        return 0;
    c->src->next_input_byte = e->in.at;
    c->src->bytes_in_buffer = (size_t)(e->in.end - e->in.at);
    return 1;
}
