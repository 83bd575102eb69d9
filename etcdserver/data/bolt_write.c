/* A page is written when the next pair does not fit; a pair larger than a page gets a page with overflow of
 * its own. */
#include "bolt_write.h"

#define PAGE_HEADER 16
#define ELEMENT 16
#define FLAG_BRANCH 1u
#define FLAG_LEAF 2u
#define FLAG_META 4u
#define FLAG_FREELIST 16u
#define ELEMENT_IS_BUCKET 1u
#define MAGIC 0xED0CDAEDu
#define VERSION 2u
#define FIRST_PAGE 3u
#define ELEMENTS_MAX 0xfff0u

/* A page to be referenced by a branch. */
struct child {
	uint64_t page;
	size_t	 key; /* offset into keys */
	size_t	 key_size;
};

/* Pages written of one level of a bucket, in order, with their first keys one after another. */
struct level {
	struct child *children;
	size_t	      count;
	size_t	      capacity;
	char	     *keys;
	size_t	      keys_size;
	size_t	      keys_capacity;
};

struct element {
	uint32_t flags; /* leaf only */
	uint64_t page;	/* branch only */
	size_t	 key;	/* offset into data */
	uint32_t key_size;
	uint32_t value_size;
};

struct bucket {
	const char *name;
	uint64_t    root;
};

struct vdi_bolt_writer {
	struct vdi_bolt_sink sink;
	uint64_t	     next_page;
	struct bucket	     buckets[VDI_BOLT_BUCKETS_MAX];
	size_t		     bucket_count;

	/* Current page. */
	struct element *elements;
	size_t		element_count;
	size_t		element_capacity;
	char	       *data; /* keys and values one after another */
	size_t		data_size;
	size_t		data_capacity;
	char	       *page; /* scratch */
	size_t		page_capacity;

	struct level level; /* pages written of the bucket's leaves */
};

static void put_u16(char *at, uint16_t number)
{
	at[0] = (char) number;
	at[1] = (char) (number >> 8);
}

static void put_u32(char *at, uint32_t number)
{
	put_u16(at, (uint16_t) number);
	put_u16(at + 2, (uint16_t) (number >> 16));
}

static void put_u64(char *at, uint64_t number)
{
	put_u32(at, (uint32_t) number);
	put_u32(at + 4, (uint32_t) (number >> 32));
}

vd_status vdi_bolt_writer_new(const struct vdi_bolt_sink *sink, struct vdi_bolt_writer **ret_writer)
{
	struct vdi_bolt_writer *writer = VDI_NEW(struct vdi_bolt_writer);

	if (writer == NULL)
		return VD_NOMEM;
	writer->sink = *sink;
	writer->next_page = FIRST_PAGE;
	*ret_writer = writer;
	return VD_OK;
}

static void fini_level(struct level *level)
{
	vdi_free(level->children);
	vdi_free(level->keys);
	memset(level, 0, sizeof *level);
}

struct vdi_bolt_writer *vdi_bolt_writer_free(struct vdi_bolt_writer *writer)
{
	if (writer == NULL)
		return NULL;
	fini_level(&writer->level);
	vdi_free(writer->elements);
	vdi_free(writer->data);
	vdi_free(writer->page);
	vdi_free(writer);
	return NULL;
}

static vd_status add_child(struct level *level, uint64_t page, struct vd_bytes key)
{
	if (!vdi_grow((void **) &level->children, &level->capacity, level->count + 1,
		      sizeof level->children[0]) ||
	    !vdi_grow((void **) &level->keys, &level->keys_capacity, level->keys_size + key.size, 1))
		return VD_NOMEM;
	level->children[level->count++] = (struct child) { page, level->keys_size, key.size };
	if (key.size)
		memcpy(level->keys + level->keys_size, key.data, key.size);
	level->keys_size += key.size;
	return VD_OK;
}

static size_t filled_size(const struct vdi_bolt_writer *writer)
{
	return PAGE_HEADER + writer->element_count * ELEMENT + writer->data_size;
}

/* Writes the current page and adds it to the level above. */
static vd_status write_page(struct vdi_bolt_writer *writer, uint32_t kind, struct level *above)
{
	size_t	 size = filled_size(writer);
	size_t	 pages = (size + VDI_BOLT_PAGE_SIZE - 1) / VDI_BOLT_PAGE_SIZE;
	uint64_t page = writer->next_page;
	char	*at;

	if (!vdi_grow((void **) &writer->page, &writer->page_capacity, pages * VDI_BOLT_PAGE_SIZE, 1))
		return VD_NOMEM;
	memset(writer->page, 0, pages * VDI_BOLT_PAGE_SIZE);
	put_u64(writer->page, page);
	put_u16(writer->page + 8, (uint16_t) kind);
	put_u16(writer->page + 10, (uint16_t) writer->element_count);
	put_u32(writer->page + 12, (uint32_t) (pages - 1));
	for (size_t i = 0; i < writer->element_count; i++) {
		const struct element *element = &writer->elements[i];
		/* Offset from the element itself to its key. */
		size_t place = (writer->element_count - i) * ELEMENT + element->key;

		at = writer->page + PAGE_HEADER + i * ELEMENT;
		if (kind == FLAG_LEAF) {
			put_u32(at, element->flags);
			put_u32(at + 4, (uint32_t) place);
			put_u32(at + 8, element->key_size);
			put_u32(at + 12, element->value_size);
		} else {
			put_u32(at, (uint32_t) place);
			put_u32(at + 4, element->key_size);
			put_u64(at + 8, element->page);
		}
	}
	if (writer->data_size)
		memcpy(writer->page + PAGE_HEADER + writer->element_count * ELEMENT, writer->data,
		       writer->data_size);
	VDI_TRY(writer->sink.write(writer->sink.arg, (int64_t) page * VDI_BOLT_PAGE_SIZE, writer->page,
				   pages * VDI_BOLT_PAGE_SIZE));
	writer->next_page += pages;
	VDI_TRY(add_child(above, page,
			  writer->element_count ? (struct vd_bytes) { writer->data + writer->elements[0].key,
								      writer->elements[0].key_size } :
						  VD_BYTES_NONE));
	writer->element_count = 0;
	writer->data_size = 0;
	return VD_OK;
}

static vd_status add_element(struct vdi_bolt_writer *writer, uint32_t kind, struct element element,
			     struct vd_bytes key, struct vd_bytes value, struct level *above)
{
	size_t size = ELEMENT + key.size + value.size;

	if (writer->element_count &&
	    (filled_size(writer) + size > VDI_BOLT_PAGE_SIZE || writer->element_count >= ELEMENTS_MAX))
		VDI_TRY(write_page(writer, kind, above));
	if (!vdi_grow((void **) &writer->elements, &writer->element_capacity, writer->element_count + 1,
		      sizeof element) ||
	    !vdi_grow((void **) &writer->data, &writer->data_capacity,
		      writer->data_size + key.size + value.size, 1))
		return VD_NOMEM;
	element.key = writer->data_size;
	element.key_size = (uint32_t) key.size;
	element.value_size = (uint32_t) value.size;
	if (key.size)
		memcpy(writer->data + writer->data_size, key.data, key.size);
	if (value.size)
		memcpy(writer->data + writer->data_size + key.size, value.data, value.size);
	writer->data_size += key.size + value.size;
	writer->elements[writer->element_count++] = element;
	return VD_OK;
}

/* Writes branches over the lower level until one page is left. */
static vd_status close_levels(struct vdi_bolt_writer *writer, uint64_t *ret_root)
{
	vd_status status = VD_OK;

	while (status == VD_OK && writer->level.count > 1) {
		struct level lower = writer->level;

		memset(&writer->level, 0, sizeof writer->level);
		for (size_t i = 0; status == VD_OK && i < lower.count; i++) {
			struct element element = { .page = lower.children[i].page };

			status = add_element(writer, FLAG_BRANCH, element,
					     (struct vd_bytes) { lower.keys + lower.children[i].key,
								 lower.children[i].key_size },
					     VD_BYTES_NONE, &writer->level);
		}
		if (status == VD_OK)
			status = write_page(writer, FLAG_BRANCH, &writer->level);
		fini_level(&lower);
	}
	if (status == VD_OK)
		*ret_root = writer->level.children[0].page;
	fini_level(&writer->level);
	return status;
}

vd_status vdi_bolt_bucket_begin(struct vdi_bolt_writer *writer, const char *name)
{
	VDI_CHECK(writer->bucket_count < VDI_BOLT_BUCKETS_MAX);
	writer->buckets[writer->bucket_count].name = name;
	return VD_OK;
}

vd_status vdi_bolt_put(struct vdi_bolt_writer *writer, struct vd_bytes key, struct vd_bytes value)
{
	struct element element = { 0 };

	return add_element(writer, FLAG_LEAF, element, key, value, &writer->level);
}

vd_status vdi_bolt_bucket_end(struct vdi_bolt_writer *writer)
{
	/* An empty bucket is an empty leaf. */
	if (writer->element_count || writer->level.count == 0)
		VDI_TRY(write_page(writer, FLAG_LEAF, &writer->level));
	return close_levels(writer, &writer->buckets[writer->bucket_count++].root);
}

static uint64_t fnv1a(const char *bytes, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char) bytes[i]) * 0x100000001b3u;
	return hash;
}

static vd_status write_meta(struct vdi_bolt_writer *writer, uint64_t place, uint64_t root)
{
	char  page[VDI_BOLT_PAGE_SIZE] = { 0 };
	char *meta = page + PAGE_HEADER;

	put_u64(page, place);
	put_u16(page + 8, FLAG_META);
	put_u32(meta, MAGIC);
	put_u32(meta + 4, VERSION);
	put_u32(meta + 8, VDI_BOLT_PAGE_SIZE);
	put_u64(meta + 16, root);
	put_u64(meta + 32, FIRST_PAGE - 1); /* the freelist */
	put_u64(meta + 40, writer->next_page);
	put_u64(meta + 48, place); /* transactions 0 and 1 */
	put_u64(meta + 56, fnv1a(meta, 56));
	return writer->sink.write(writer->sink.arg, (int64_t) place * VDI_BOLT_PAGE_SIZE, page, sizeof page);
}

vd_status vdi_bolt_finish(struct vdi_bolt_writer *writer, int64_t *ret_size)
{
	char	 page[VDI_BOLT_PAGE_SIZE] = { 0 };
	uint64_t root;

	for (size_t i = 0; i < writer->bucket_count; i++) {
		struct element element = { .flags = ELEMENT_IS_BUCKET };
		char	       value[16] = { 0 };

		put_u64(value, writer->buckets[i].root);
		VDI_TRY(add_element(writer, FLAG_LEAF, element, vd_bytes_of(writer->buckets[i].name),
				    (struct vd_bytes) { value, sizeof value }, &writer->level));
	}
	VDI_TRY(write_page(writer, FLAG_LEAF, &writer->level));
	VDI_TRY(close_levels(writer, &root));
	put_u64(page, FIRST_PAGE - 1);
	put_u16(page + 8, FLAG_FREELIST);
	VDI_TRY(writer->sink.write(writer->sink.arg, (int64_t) (FIRST_PAGE - 1) * VDI_BOLT_PAGE_SIZE, page,
				   sizeof page));
	VDI_TRY(write_meta(writer, 0, root));
	VDI_TRY(write_meta(writer, 1, root));
	*ret_size = (int64_t) writer->next_page * VDI_BOLT_PAGE_SIZE;
	return VD_OK;
}
