/* A page is scanned once for the offsets of its parts; then its array is split into elements, and each is
 * scanned for the few members that are needed. The bytes of objects are never rewritten. */
#include "object_list.h"

#include <stdio.h>

#include "json_scan.h"
#include "json_stream.h"

#define REVISION_SIZE 64

static const struct vdi_json_limits limits = { (size_t) UINT32_MAX - 1, VDI_JSON_DEPTH_MAX };

enum page_field { PAGE_CONTINUE, PAGE_ITEMS, PAGE_ROWS, PAGE_COLUMNS, PAGE_FIELD_COUNT };
static const char *const page_fields[PAGE_FIELD_COUNT] = { "metadata.continue", "items", "rows",
							   "columnDefinitions" };

enum row_field { ROW_CELLS, ROW_NAME, ROW_NAMESPACE, ROW_REVISION, ROW_FIELD_COUNT };
static const char *const row_fields[ROW_FIELD_COUNT] = { "cells", "object.metadata.name",
							 "object.metadata.namespace",
							 "object.metadata.resourceVersion" };

struct vdi_object_reader {
	struct vdi_json_plan  *page_plan, *row_plan;
	struct vdi_json_object page, row;
};

/* ---- Texts ---- */

static vd_status add(struct vdi_text *text, const char *more, size_t size)
{
	if (!vdi_grow((void **) &text->data, &text->capacity, text->size + size + 1, 1))
		return VD_NOMEM;
	memcpy(text->data + text->size, more, size);
	text->size += size;
	text->data[text->size] = 0;
	return VD_OK;
}

vd_status vdi_text_add(struct vdi_text *text, const char *more)
{
	return add(text, more, strlen(more));
}

vd_status vdi_text_add_encoded(struct vdi_text *text, const char *more)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	char		  code[4];

	for (; *more; more++) {
		if (strchr(plain, *more)) {
			VDI_TRY(add(text, more, 1));
		} else {
			snprintf(code, sizeof code, "%%%02X", (unsigned char) *more);
			VDI_TRY(add(text, code, 3));
		}
	}
	return VD_OK;
}

vd_status vdi_text_add_parameter(struct vdi_text *text, const char *name, const char *value)
{
	if (value == NULL || *value == 0)
		return VD_OK;
	VDI_TRY(vdi_text_add(text, text->data && strchr(text->data, '?') ? "&" : "?"));
	VDI_TRY(vdi_text_add(text, name));
	VDI_TRY(vdi_text_add(text, "="));
	return vdi_text_add_encoded(text, value);
}

void vdi_text_fini(struct vdi_text *text)
{
	vdi_free(text->data);
	memset(text, 0, sizeof *text);
}

vd_status vdi_object_path(const struct vdi_object_query *query, bool with_name, struct vdi_text *path)
{
	VDI_TRY(vdi_text_add(path, *query->resource.group ? "/apis/" : "/api"));
	VDI_TRY(vdi_text_add_encoded(path, query->resource.group));
	VDI_TRY(vdi_text_add(path, "/"));
	VDI_TRY(vdi_text_add_encoded(path, query->resource.version));
	if (query->namespace_name) {
		VDI_TRY(vdi_text_add(path, "/namespaces/"));
		VDI_TRY(vdi_text_add_encoded(path, query->namespace_name));
	}
	VDI_TRY(vdi_text_add(path, "/"));
	VDI_TRY(vdi_text_add_encoded(path, query->resource.plural));
	if (with_name && query->name) {
		VDI_TRY(vdi_text_add(path, "/"));
		VDI_TRY(vdi_text_add_encoded(path, query->name));
	}
	return VD_OK;
}

void vdi_resource_print_name(const struct vdi_resource_name *resource, struct vd_bytes name)
{
	printf("%s%s%s/%.*s", resource->singular, *resource->group ? "." : "", resource->group,
	       (int) name.size, (const char *) name.data);
}

const char *vdi_object_accept(enum vdi_output_format output_format)
{
	return output_format == VDI_AS_TABLE ?
		       "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" :
		       "application/json";
}

/* ---- Parsing ---- */

static vd_status plan_of(const char *const *fields, size_t count, struct vdi_json_plan **ret_plan)
{
	struct vd_bytes paths[8];

	for (size_t i = 0; i < count; i++)
		paths[i] = vd_bytes_of(fields[i]);
	return vdi_json_plan_new(paths, count, ret_plan, NULL);
}

vd_status vdi_object_reader_new(struct vdi_object_reader **ret_reader)
{
	struct vdi_object_reader *reader = VDI_NEW(struct vdi_object_reader);
	vd_status		  status = reader ? VD_OK : VD_NOMEM;

	if (status == VD_OK)
		status = plan_of(page_fields, PAGE_FIELD_COUNT, &reader->page_plan);
	if (status == VD_OK)
		status = plan_of(row_fields, ROW_FIELD_COUNT, &reader->row_plan);
	if (status == VD_OK)
		status = vdi_json_object_init(&reader->page, reader->page_plan);
	if (status == VD_OK)
		status = vdi_json_object_init(&reader->row, reader->row_plan);
	if (status == VD_OK)
		*ret_reader = reader;
	else
		vdi_object_reader_free(reader);
	return status;
}

struct vdi_object_reader *vdi_object_reader_free(struct vdi_object_reader *reader)
{
	if (reader) {
		vdi_json_object_fini(&reader->page);
		vdi_json_object_fini(&reader->row);
		vdi_json_plan_free(reader->page_plan);
		vdi_json_plan_free(reader->row_plan);
		vdi_free(reader);
	}
	return NULL;
}

static struct vd_bytes string_at(struct vd_bytes text, const struct vdi_json_value *value)
{
	return value->type == VDI_JSON_STRING ? vdi_json_value_bytes(text, value) : VD_BYTES_NONE;
}

/* Returns the text inside an array; empty if it is not an array. */
static struct vd_bytes elements_at(struct vd_bytes text, const struct vdi_json_value *value)
{
	struct vd_bytes array = vdi_json_value_bytes(text, value);

	return value->type == VDI_JSON_ARRAY ?
		       (struct vd_bytes) { (const char *) array.data + 1, array.size - 2 } :
		       VD_BYTES_NONE;
}

/* Reads an object, or a row with its object. */
static vd_status read_one(struct vdi_object_reader *reader, struct vd_bytes text, bool is_row,
			  struct vdi_listed *listed, struct vd_error *reterr)
{
	struct vdi_json_object *row = &reader->row;

	VDI_TRY(vdi_json_scan(text, &limits, row, reterr));
	*listed = (struct vdi_listed) { .text = text };
	if (is_row) {
		listed->cells = vdi_json_value_bytes(text, vdi_json_field(row, ROW_CELLS));
		listed->name = string_at(text, vdi_json_field(row, ROW_NAME));
		listed->namespace_name = string_at(text, vdi_json_field(row, ROW_NAMESPACE));
		listed->revision = string_at(text, vdi_json_field(row, ROW_REVISION));
	} else {
		listed->name = string_at(text, vdi_json_member(row, VDI_JSON_NAME));
		listed->namespace_name = string_at(text, vdi_json_member(row, VDI_JSON_NAMESPACE));
		listed->revision = string_at(text, vdi_json_member(row, VDI_JSON_RESOURCE_VERSION));
	}
	return VD_OK;
}

static bool is_table(struct vd_bytes text, const struct vdi_json_object *page)
{
	return vd_bytes_equal(string_at(text, vdi_json_member(page, VDI_JSON_KIND)), vd_bytes_of("Table"));
}

vd_status vdi_object_read(struct vdi_object_reader *reader, struct vd_bytes text,
			  struct vdi_listed *ret_listed, struct vd_bytes *ret_columns,
			  struct vd_error *reterr)
{
	struct vdi_json_object *page = &reader->page;
	struct vd_bytes		revision;

	VDI_TRY(vdi_json_scan(text, &limits, page, reterr));
	if (ret_columns)
		*ret_columns = VD_BYTES_NONE;
	if (!is_table(text, page))
		return read_one(reader, text, false, ret_listed, reterr);
	if (ret_columns && vdi_json_field(page, PAGE_COLUMNS)->type == VDI_JSON_ARRAY)
		*ret_columns = vdi_json_value_bytes(text, vdi_json_field(page, PAGE_COLUMNS));
	revision = string_at(text, vdi_json_member(page, VDI_JSON_RESOURCE_VERSION));
	*ret_listed = (struct vdi_listed) { .text = text };
	if (elements_at(text, vdi_json_field(page, PAGE_ROWS)).size)
		VDI_TRY(read_one(reader, elements_at(text, vdi_json_field(page, PAGE_ROWS)), true, ret_listed,
				 reterr));
	if (ret_listed->revision.size == 0)
		ret_listed->revision = revision;
	return VD_OK;
}

struct elements {
	struct vdi_object_reader   *reader;
	const struct vdi_list_sink *sink;
	bool			    are_rows;
	struct vd_error		   *reterr;
};

static vd_status take_element(void *arg, struct vd_bytes text)
{
	struct elements	 *elements = arg;
	struct vdi_listed listed;

	VDI_TRY(read_one(elements->reader, text, elements->are_rows, &listed, elements->reterr));
	return elements->sink->object(elements->sink->arg, &listed);
}

static vd_status walk(struct vdi_object_reader *reader, struct vd_bytes body,
		      const struct vdi_list_sink *sink, bool table, struct vd_error *reterr)
{
	struct elements	       elements = { reader, sink, table, reterr };
	struct vdi_json_stream stream = { 0 };
	struct vd_bytes	       inside =
		elements_at(body, vdi_json_field(&reader->page, table ? PAGE_ROWS : PAGE_ITEMS));
	vd_status status = VD_OK;

	/* Fed in pieces, so that only one element is copied at a time. */
	for (size_t at = 0; status == VD_OK && at < inside.size; at += 65536)
		status = vdi_json_stream_feed(&stream,
					      (struct vd_bytes) { (const char *) inside.data + at,
								  VDI_MIN(65536, inside.size - at) },
					      take_element, &elements);
	vdi_json_stream_fini(&stream);
	return status;
}

vd_status vdi_object_read_page(struct vdi_object_reader *reader, struct vd_bytes body,
			       const struct vdi_list_sink *sink, struct vdi_text *ret_continue,
			       struct vd_error *reterr)
{
	struct vdi_json_object *scanned = &reader->page;
	struct vdi_page		page = { 0 };
	struct vdi_listed	listed;
	struct vd_bytes		token;
	bool			table;

	VDI_TRY(vdi_json_scan(body, &limits, scanned, reterr));
	table = is_table(body, scanned);
	page.kind = string_at(body, vdi_json_member(scanned, VDI_JSON_KIND));
	page.api_version = string_at(body, vdi_json_member(scanned, VDI_JSON_API_VERSION));
	if (vdi_json_member(scanned, VDI_JSON_METADATA)->type == VDI_JSON_OBJECT)
		page.metadata = vdi_json_value_bytes(body, vdi_json_member(scanned, VDI_JSON_METADATA));
	page.revision = string_at(body, vdi_json_member(scanned, VDI_JSON_RESOURCE_VERSION));
	if (table && vdi_json_field(scanned, PAGE_COLUMNS)->type == VDI_JSON_ARRAY)
		page.columns = vdi_json_value_bytes(body, vdi_json_field(scanned, PAGE_COLUMNS));
	token = string_at(body, vdi_json_field(scanned, PAGE_CONTINUE));
	page.is_last = token.size == 0;
	if (ret_continue && token.size)
		VDI_TRY(add(ret_continue, token.data, token.size));
	if (sink->page_begin)
		VDI_TRY(sink->page_begin(sink->arg, &page));
	if (!table && vdi_json_field(scanned, PAGE_ITEMS)->type == VDI_JSON_ABSENT) {
		VDI_TRY(read_one(reader, body, false, &listed, reterr));
		VDI_TRY(sink->object(sink->arg, &listed));
	} else {
		VDI_TRY(walk(reader, body, sink, table, reterr));
	}
	return sink->page_end ? sink->page_end(sink->arg, &page) : VD_OK;
}

/* ---- Lists ---- */

struct counting_sink {
	const struct vdi_list_sink *sink;
	int64_t			    count;
	char			   *revision; /* of the first page; NULL: not needed */
};

static vd_status counting_begin(void *arg, const struct vdi_page *page)
{
	struct counting_sink *counting = arg;

	if (counting->revision && *counting->revision == 0)
		snprintf(counting->revision, REVISION_SIZE, "%.*s",
			 (int) VDI_MIN(page->revision.size, REVISION_SIZE - 1),
			 page->revision.size ? (const char *) page->revision.data : "");
	return counting->sink->page_begin ? counting->sink->page_begin(counting->sink->arg, page) : VD_OK;
}

static vd_status counting_object(void *arg, const struct vdi_listed *listed)
{
	struct counting_sink *counting = arg;

	counting->count++;
	return counting->sink->object(counting->sink->arg, listed);
}

static vd_status counting_end(void *arg, const struct vdi_page *page)
{
	struct counting_sink *counting = arg;

	return counting->sink->page_end ? counting->sink->page_end(counting->sink->arg, page) : VD_OK;
}

static vd_status page_path(const struct vdi_object_query *query, int64_t listed, const char *token,
			   struct vdi_text *path)
{
	char	number[24] = "";
	int64_t size = query->chunk_size;

	if (query->limit && (size == 0 || query->limit - listed < size))
		size = query->limit - listed;
	if (size)
		snprintf(number, sizeof number, "%lld", (long long) size);
	VDI_TRY(vdi_object_path(query, true, path));
	VDI_TRY(vdi_text_add_parameter(path, "labelSelector", query->label_selector));
	VDI_TRY(vdi_text_add_parameter(path, "fieldSelector", query->field_selector));
	if (query->name == NULL)
		VDI_TRY(vdi_text_add_parameter(path, "limit", number));
	if (token)
		return vdi_text_add_parameter(path, "continue", token);
	VDI_TRY(vdi_text_add_parameter(path, "resourceVersion", query->revision));
	return vdi_text_add_parameter(path, "resourceVersionMatch", query->revision_match);
}

/* Returns the token that a 410 may contain for continuing with a newer revision. */
static bool fresh_token(struct vdi_object_reader *reader, const struct vdi_kube_reply *answer,
			struct vdi_text *token)
{
	struct vd_bytes body = { answer->body, answer->size };
	struct vd_bytes text;

	if (answer->code != 410 || vdi_json_scan(body, &limits, &reader->page, NULL) != VD_OK)
		return false;
	text = string_at(body, vdi_json_field(&reader->page, PAGE_CONTINUE));
	token->size = 0;
	return text.size && add(token, text.data, text.size) == VD_OK;
}

vd_status vdi_object_list(struct vdi_kube_session *session, const struct vdi_object_query *query,
			  const struct vdi_list_sink *sink, char *ret_revision, struct vd_error *reterr)
{
	struct counting_sink	  counting = { sink, 0, ret_revision };
	struct vdi_list_sink	  counted = { counting_begin, counting_object, counting_end, &counting };
	struct vdi_object_reader *reader;
	struct vdi_text		  token = { 0 };
	bool			  more = true;
	vd_status		  status = vdi_object_reader_new(&reader);

	if (status != VD_OK)
		return vd_error_set(reterr, status, "out of memory");
	if (ret_revision)
		*ret_revision = 0;
	while (status == VD_OK && more) {
		struct vdi_kube_reply answer = { 0 };
		struct vdi_text	      path = { 0 };

		status = page_path(query, counting.count, token.size ? token.data : NULL, &path);
		if (status == VD_OK)
			status = vdi_kube_session_request(session, "GET", path.data,
							  vdi_object_accept(query->output_format), NULL,
							  &answer, reterr);
		if (status == VD_EXPIRED && token.size && fresh_token(reader, &answer, &token)) {
			fprintf(stderr, "vedette: the revision of the list expired before its end; the "
					"remaining objects are from a newer one\n");
			status = VD_OK;
		} else if (status == VD_OK) {
			token.size = 0;
			status = vdi_object_read_page(reader, (struct vd_bytes) { answer.body, answer.size },
						      &counted, &token, reterr);
			more = token.size && (query->limit == 0 || counting.count < query->limit);
		}
		vdi_kube_reply_fini(&answer);
		vdi_text_fini(&path);
	}
	vdi_text_fini(&token);
	vdi_object_reader_free(reader);
	return status;
}
