/* Levels of vector instructions. */

#include "native.h"
#include "vectors.h"

int tdn_level(int wanted)
{
    int found = 0;
#if TDN_LEVELS > 1
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        found = 1;
    if (found && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        found = 2;
#endif
    return wanted < found ? (wanted > 0 ? wanted : 0) : found;
}
