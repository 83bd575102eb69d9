/* Only the white space between tokens is replaced; tokens are copied. */
#include "json_print.h"

#include <stdio.h>

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

static void new_line(unsigned depth)
{
	putchar('\n');
	for (unsigned i = 0; i < depth; i++)
		fputs("    ", stdout);
}

/* Returns the index after the string that starts at `at`. */
static size_t string_end(const char *text, size_t size, size_t at)
{
	for (at++; at < size && text[at] != '"'; at++)
		if (text[at] == '\\')
			at++;
	return VDI_MIN(at + 1, size);
}

void vdi_json_print_at(struct vd_bytes json, unsigned depth)
{
	const char *text = json.data;

	for (size_t i = 0; i < json.size;) {
		char   character = text[i];
		size_t next = i + 1;

		if (is_space(character)) {
			i++;
			continue;
		}
		if (character == '"') {
			next = string_end(text, json.size, i);
			fwrite(text + i, 1, next - i, stdout);
		} else if (character == '{' || character == '[') {
			while (next < json.size && is_space(text[next]))
				next++;
			putchar(character);
			if (next < json.size && (text[next] == '}' || text[next] == ']'))
				putchar(text[next++]);
			else
				new_line(++depth);
		} else if (character == '}' || character == ']') {
			new_line(depth ? --depth : 0);
			putchar(character);
		} else {
			putchar(character);
			if (character == ',')
				new_line(depth);
			else if (character == ':')
				putchar(' ');
		}
		i = next;
	}
}

void vdi_json_print(struct vd_bytes json)
{
	vdi_json_print_at(json, 0);
	putchar('\n');
}
