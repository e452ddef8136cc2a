/* Huffman decoding of baseline scans.  It replaces libjpeg's decoder, which takes most of the time of an image.

   A table is indexed by the next bits, and an entry describes a coefficient: the length of its code and value in bits,
   the number of zeros before it, and its value.  Blocks outside of a window are skipped, with several coefficients per
   lookup.  Decoding fails for all data that libjpeg would warn about, or that the standard forbids. */

/* The start of an internal structure of libjpeg-turbo 2.1 to 3.1, which jpeglib.h declares without its fields. */
struct jpeg_entropy_decoder {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
};

#define LOOK 11          /* bits of a table index */
#define END_OF_BLOCK 128 /* value of `advance` that ends a block */

typedef struct {
    uint8_t length, advance; /* bits of code and value, distance to the next coefficient */
    int16_t value;
    /* If the value doesn't fit in LOOK bits: length 0, the symbol, the code's length.  If the code doesn't fit: zeros. */
} entry;

typedef struct {
    entry one[1 << LOOK];
    uint8_t passed[1 << LOOK][2]; /* total length and advance of all coefficients that fit in LOOK bits */
    uint32_t limit[18];           /* upper limit of codes of each length, shifted to the left end of 16 bits */
    int32_t offset[17];           /* for each length: index of the symbol minus code */
    uint8_t symbols[256];
} huffman;

typedef struct {
    const uint8_t *at, *end;
    uint64_t bits; /* the next bits, from the highest bit on */
    int count;     /* number of these bits */
    int made_up;   /* number of these bits that are zeros after the end of the data */
} reader;

typedef struct {
    reader in;
    const uint8_t *begin;
    int32_t level[MAX_COMPS_IN_SCAN]; /* first coefficient of each component's last block */
    int dc_only[MAX_COMPS_IN_SCAN];
    int columns, column, first, last; /* units (MCUs) per row, the next unit, and the first and last unit that are needed */
    int interval, left, restart;      /* units between restart markers, units until the next marker, and its number */
    huffman dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
} entropy;

static const uint8_t ZIGZAG[64 + END_OF_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
    /* the rest is zero: values after the end of a block are written to its first coefficient, which is set last */
};

static inline int extend(uint32_t bits, int size)
{
    return (int)bits - (bits >> (size - 1) & 1 ? 0 : (1 << size) - 1);
}

/* Build the tables of a Huffman code; return 0 if it is invalid. */
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
        /* If the first coefficient has an index up to 32, all of these but the last are inside the block. */
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

/* Read bytes until there are at least 56 bits. */
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
        if (!((~next - 0x0101010101010101) & next & 0x8080808080808080)) { /* if no byte is FF */
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

/* Read a symbol and its value, if the table has no complete entry; return 0 if there is no such code. */
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

/* Read a coefficient, or the end of the block, if the table has no complete entry.
   Return the index after it, or 0 if the data is damaged. */
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

/* Decode the coefficients of a block after the first; return 0 if they are damaged. */
static int take_block(reader *in, const huffman *h, JCOEF *block)
{
    int k = 1;
    while (k && k < DCTSIZE2) {
        refill(in); /* 56 bits suffice for several lookups with the state in registers */
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

/* Like take_block, but discard the values. */
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

/* Move back to the first byte of which no bit was used; return 0 if bits after the end of the data were used. */
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

/* Skip a restart marker; return 0 if there is none. */
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

/* Decode the blocks of a unit.  libjpeg has set them to zero; it passes NULL for rows that are skipped. */
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
            block[0] = (JCOEF)value; /* set last, because the end of the block was also written here */
    }
    if (r->count < r->made_up)
        c->err->error_exit((j_common_ptr)c);
    return TRUE;
}

/* Replace libjpeg's decoder of the scan, after jpeg_start_decompress; return NULL if libjpeg must decode the scan.

   `left` and `width` are the needed columns of pixels; `passing` is 1 if blocks are skipped. */
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
    e->first = left / unit - 1; /* one more unit on each side, which is not needed */
    e->last = (left + width) / unit + 1;
    e->interval = e->left = (int)c->restart_interval;
    c->client_data = e;
    c->entropy->decode_mcu = decode_unit;
    return e;
}

/* Let libjpeg continue after the scan; return 0 if no marker follows the scan. */
static int hand_back(j_decompress_ptr c, entropy *e)
{
    if (!give_back(e) || e->in.at == e->in.end || *e->in.at != 0xFF)
        return 0;
    c->src->next_input_byte = e->in.at;
    c->src->bytes_in_buffer = (size_t)(e->in.end - e->in.at);
    return 1;
}
