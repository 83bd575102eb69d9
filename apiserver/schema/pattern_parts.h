/* The parse tree of a pattern, written by pattern_read.c and compiled by pattern.c. */
#ifndef VDI_PATTERN_PARTS_H
#define VDI_PATTERN_PARTS_H

#include "pattern.h"

#define VDI_PATTERN_NONE UINT32_MAX
#define VDI_PATTERN_RUNE_MAX 0x10FFFF

enum vdi_pattern_part_kind {
	VDI_PART_EMPTY,
	VDI_PART_SET,
	VDI_PART_ASSERT,
	VDI_PART_CAT,
	VDI_PART_ALT,
	VDI_PART_REPEAT
};
enum vdi_pattern_assert {
	VDI_ASSERT_TEXT_BEGIN,
	VDI_ASSERT_TEXT_END,
	VDI_ASSERT_LINE_BEGIN,
	VDI_ASSERT_LINE_END,
	VDI_ASSERT_WORD,
	VDI_ASSERT_NO_WORD
};

struct vdi_pattern_part {
	uint8_t	 kind;
	uint32_t a, b;	   /* children; set: range of its entries in ranges; assert: its kind */
	int	 min, max; /* of a repeat; max -1: unlimited */
};

struct vdi_pattern_range {
	uint32_t from, to;
};

/* Grows while the pattern is parsed; the caller of vdi_pattern_read frees both arrays, also after an
 * error. */
struct vdi_pattern_parts {
	struct vdi_pattern_part	 *items;
	size_t			  count;
	size_t			  capacity;
	struct vdi_pattern_range *ranges; /* of all sets; those of one set are sorted and do not touch */
	size_t			  range_count;
	size_t			  range_capacity;
	uint32_t		  root;
};

/* Parses a pattern. VD_INVALID with Go's message; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_read(struct vd_bytes text, struct vdi_pattern_parts *parts,
					struct vd_error *reterr);

/* Returns the character at *at and advances. Invalid UTF-8 yields an arbitrary value; never reads beyond
 * end. */
uint32_t vdi_pattern_rune(const char **at, const char *end);

#endif
