/* The parts of a pattern between its reading (pattern_read.c) and its program (pattern.c). */
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
	uint32_t a, b;	   /* children; of a set: the ranges from a to b; of an assert: its kind */
	int	 min, max; /* of a repeat; max -1: any number */
};

struct vdi_pattern_range {
	uint32_t from, to;
};

/* Grows while it is read; whoever reads frees both arrays. */
struct vdi_pattern_parts {
	struct vdi_pattern_part	 *items;
	size_t			  count;
	size_t			  capacity;
	struct vdi_pattern_range *ranges; /* each set's: sorted, apart */
	size_t			  range_count;
	size_t			  range_capacity;
	uint32_t		  root;
};

/* VD_INVALID with Go's words; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_pattern_read(struct vd_bytes text, struct vdi_pattern_parts *parts,
					struct vd_error *reterr);

/* The character at *at, which moves on; text that is no UTF-8 gives something, and never more than there
 * is. */
uint32_t vdi_pattern_rune(const char **at, const char *end);

#endif
