/* The compiler's vector types, and the number of instruction levels for which the loops are compiled. */
#ifndef TORCHDALI_VECTORS_H
#define TORCHDALI_VECTORS_H

#if defined(__GNUC__) && !defined(TDN_PLAIN) && (defined(__SSE2__) || defined(__ARM_NEON))
#define TDN_VECTORS 1
typedef float floats4 __attribute__((vector_size(16)));
#endif

#if defined(TDN_VECTORS) && defined(__x86_64__)
#define TDN_LEVELS 3
#else
#define TDN_LEVELS 1
#endif

#endif
