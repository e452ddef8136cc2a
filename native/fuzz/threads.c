/* Decode the same JPEGs in eight threads at once, under the thread sanitizer: threads FILE... */
#include "native.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, SIDE = 40, BYTES = 3 * SIDE * SIDE };

typedef struct {
    int count;
    char **names;
    uint8_t *out;
    int done;
} job;

static void *work(void *argument)
{
    job *j = argument;
    tdn_recipe r;
    memset(&r, 0, sizeof r);
    r.abi = TDN_ABI;
    r.level = 99;
    r.upright = r.fancy = r.antialias = r.item = r.planar = 1;
    r.channels = 3;
    r.shrinking = r.growing = TDN_LINEAR;
    r.free_values = 1 << 30;
    r.max_scans = 256;
    r.per_byte = 3 << 10;
    for (int i = 0; i < j->count; i++) {
        static const size_t MOST = 1 << 24;
        uint8_t *memory = malloc(MOST);
        tdn_file f[2]; /* the file, and a missing file */
        char names[4096];
        int first = snprintf(names, sizeof names - 2, "%s", j->names[i]);
        memcpy(names + first + 1, "?", 2);
        tdn_read(names, 2, memory, MOST, f, &r, 1 << 28);
        if (f[1].code == TDN_DONE)
            exit(2);
        const uint8_t *data = f->data;
        size_t length = f->length;
        tdn_header h = f->header;
        if (!f->code) {
            int height = h.orientation > 4 ? h.width : h.height, width = h.orientation > 4 ? h.height : h.width;
            tdn_sample s = {data, length, 1 << 28, j->out + (size_t)i * BYTES, NULL, {0, 0}, {height, width},
                            {SIDE, SIDE}, {0, 0}, {SIDE, SIDE}, {0, 0}, {height, width}, i % 2, 0, 1, 0, 0, 0};
            tdn_run(&r, &s, 1);
            j->done += s.code == TDN_DONE;
        }
        free(memory);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){argc - 1, argv + 1, calloc((size_t)argc, BYTES), 0};
        if (pthread_create(threads + i, NULL, work, jobs + i))
            return 2;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        if (memcmp(jobs[0].out, jobs[i].out, (size_t)argc * BYTES)) {
            fprintf(stderr, "thread %d has other pixels\n", i);
            return 1;
        }
    printf("%d threads, %d of %d files done, the same in all\n", THREADS, jobs[0].done, argc - 1);
    for (int i = 0; i < THREADS; i++)
        free(jobs[i].out);
    return jobs[0].done == 0;
}
