/* Runs a fuzz target without a fuzzer: over every file of its corpus folder, in the order of names, then over
 * seeded mutations of them. The same seed gives the same inputs everywhere: driver CORPUS [MUTATIONS [SEED]].
 * Each input is in a block of its exact size, so that the address sanitizer detects a read beyond its end. */
#include <dirent.h>
#include <stdio.h>

#include "fuzz.h"

#define INPUT_SIZE_MAX 65536
#define FILES_MAX 4096

struct input {
	uint8_t *data;
	size_t	 size;
};

static uint64_t random_state;

static uint64_t random_next(void) /* splitmix64 */
{
	uint64_t z = random_state += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static size_t random_below(size_t bound)
{
	return bound ? (size_t) (random_next() % bound) : 0;
}

static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t mutate(uint8_t *data, size_t size, const struct input *others, size_t other_count)
{
	static const char interesting[] = "{}[]\":,\\/=!()<>~ \t\n\0-+.eE019ux\x80\xc3\xed\xf4\xff";
	size_t		  changes = 1 + random_below(6);

	while (changes--) {
		size_t		    at = random_below(size + 1);
		size_t		    length = random_below(VDI_MIN(size - at, (size_t) 32) + 1);
		const struct input *other = &others[random_below(other_count)];

		switch (random_below(6)) {
		case 0: /* change a byte */
			if (at < size)
				data[at] = (uint8_t) random_next();
			break;
		case 1: /* change a byte to a significant one */
			if (at < size)
				data[at] = (uint8_t) interesting[random_below(sizeof interesting - 1)];
			break;
		case 2: /* insert one */
			if (size < INPUT_SIZE_MAX) {
				memmove(data + at + 1, data + at, size - at);
				data[at] = (uint8_t) interesting[random_below(sizeof interesting - 1)];
				size++;
			}
			break;
		case 3: /* cut a piece out */
			memmove(data + at, data + at + length, size - at - length);
			size -= length;
			break;
		case 4: /* repeat a piece */
			if (size + length <= INPUT_SIZE_MAX) {
				memmove(data + at + length, data + at, size - at);
				size += length;
			}
			break;
		default: /* continue as another input does */
			if (other->size > at) {
				size = VDI_MIN(other->size, (size_t) INPUT_SIZE_MAX);
				memcpy(data + at, other->data + at, size - at);
			}
			break;
		}
	}
	return size;
}

static bool file_read(const char *folder, const char *name, struct input *ret_input)
{
	char  path[4096];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "rb");
	ret_input->data = malloc(INPUT_SIZE_MAX);
	if (file == NULL || ret_input->data == NULL)
		return false;
	ret_input->size = fread(ret_input->data, 1, INPUT_SIZE_MAX, file);
	fclose(file);
	return true;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	static struct input inputs[FILES_MAX];
	static uint8_t	    data[INPUT_SIZE_MAX];
	struct dirent	  **entries = NULL;
	unsigned long	    mutations = argc > 2 ? strtoul(argv[2], NULL, 10) : 20000;
	int		    count = argc > 1 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;

	if (count <= 0 || count > FILES_MAX) {
		fprintf(stderr, "usage: driver CORPUS [MUTATIONS [SEED]]; the corpus has 1 to %d files\n",
			FILES_MAX);
		return 2;
	}
	random_state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	for (int i = 0; i < count; i++) {
		if (!file_read(argv[1], entries[i]->d_name, &inputs[i])) {
			perror(entries[i]->d_name);
			return 1;
		}
		run(inputs[i].data, inputs[i].size);
	}
	run(data, 0);
	for (unsigned long i = 0; i < mutations; i++) {
		const struct input *input = &inputs[random_below((size_t) count)];

		memcpy(data, input->data, input->size);
		run(data, mutate(data, input->size, inputs, (size_t) count));
	}
	for (int i = 0; i < count; i++) {
		free(inputs[i].data);
		free(entries[i]);
	}
	free(entries);
	printf("%d files, %lu mutations\n", count, mutations);
	return 0;
}
