/* Accept headers as the clients send them. */
#include "vdtest.h"

#include "negotiate.h"

#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define V2 "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
#define BETA "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
#define PROTO "application/vnd.kubernetes.protobuf"

static void clients_get_the_form_they_ask_for(void **state)
{
	static const struct {
		const char *accept;
		unsigned    forms;
		int	    form; /* -1: 406 */
	} rows[] = {
		{ "", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "*/*", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/json, */*", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ PROTO ",application/json", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ PROTO, VDI_FORMS_LIST, -1 },
		{ "text/html", VDI_FORMS_LIST, -1 },
		{ TABLE ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", VDI_FORMS_LIST,
		  VDI_FORM_TABLE },
		{ TABLE ",application/json", VDI_FORMS_DISCOVERY, VDI_FORM_OBJECT },
		{ PROTO ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/"
			"json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
			"application/json",
		  VDI_FORMS_LIST, VDI_FORM_METADATA_LIST },
		{ "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", VDI_FORMS_RESOURCE,
		  VDI_FORM_METADATA },
		{ V2 "," BETA ",application/json", VDI_FORMS_DISCOVERY, VDI_FORM_DISCOVERY_V2 },
		{ BETA ",application/json", VDI_FORMS_DISCOVERY, VDI_FORM_DISCOVERY_V2BETA1 },
		{ "application/json;q=0.5," TABLE ";q=0.9", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0", VDI_FORMS_LIST, -1 },
		{ "application/json;as=Nonsense;g=meta.k8s.io;v=v1", VDI_FORMS_LIST, -1 },
		/* a form needs its group and its version */
		{ "application/json;as=Table;v=v1", VDI_FORMS_LIST, -1 },
		{ "application/json;as=Table;v=v1beta1", VDI_FORMS_LIST, -1 },
		{ "application/json;as=Table;g=meta.k8s.io", VDI_FORMS_LIST, -1 },
		{ "application/json;as=Table;g=meta.k8s.io;v=v2", VDI_FORMS_LIST, -1 },
		{ "application/json;as=Table;g=apidiscovery.k8s.io;v=v1", VDI_FORMS_LIST, -1 },
		{ "application/json;as=PartialObjectMetadata;v=v1", VDI_FORMS_RESOURCE, -1 },
		{ "application/json;as=PartialObjectMetadataList;v=v1", VDI_FORMS_LIST, -1 },
		{ "Application/JSON;As=Table;V=v1;G=meta.k8s.io", VDI_FORMS_LIST, VDI_FORM_TABLE },
		/* weights; one that is none of 0 to 1 counts as 1 */
		{ "application/json;q=1," TABLE ";q=1", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ TABLE ";q=1,application/json;q=1", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.1," TABLE ";q=0.2", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.12," TABLE ";q=0.13", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.123," TABLE ";q=0.124", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.1234," TABLE ";q=0.1235", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/json;q=0.9," TABLE ";q=0.10", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/json;q=0.999," TABLE ";q=1.0", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=1.0," TABLE ";q=1.9", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/json;q=0.5," TABLE ";q=-1", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.5," TABLE ";q=", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.5," TABLE ";q=x", VDI_FORMS_LIST, VDI_FORM_TABLE },
		{ "application/json;q=0.5," TABLE ";q=0.4x9", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/json;q=0.000", VDI_FORMS_LIST, -1 },
		{ "application/json;q=0.001", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ "application/*", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ " , application/json", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ " ", VDI_FORMS_LIST, VDI_FORM_OBJECT },
		{ ",", VDI_FORMS_LIST, -1 },
		{ "application/jsonx", VDI_FORMS_LIST, -1 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_negotiated got;
		bool		      fits = vdi_negotiate(vd_bytes_of(rows[i].accept), rows[i].forms, &got);

		assert_int_equal(fits ? (int) got.form : -1, rows[i].form);
	}
}

static void r648_protobuf_where_it_can_be_had(void **state)
{
#define META ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	static const struct {
		const char *accept;
		unsigned    forms;
		int	    form; /* -1: 406 */
		bool	    protobuf, json_too;
	} rows[] = {
		{ PROTO, VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, true, false },
		{ PROTO ", application/json", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, true,
		  true },
		{ PROTO ", */*", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, true, true },
		{ PROTO ", application/json;q=0", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, true,
		  false },
		{ "application/json, " PROTO, VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, false,
		  true },
		{ "*/*", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, false, true },
		{ "application/json;q=0.4, " PROTO ";q=0.5", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF,
		  VDI_FORM_OBJECT, true, true },
		{ PROTO ";q=0.4, application/json;q=0.5", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF,
		  VDI_FORM_OBJECT, false, true },
		{ PROTO ";stream=watch", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, VDI_FORM_OBJECT, true, false },
		{ PROTO ", application/json", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF_METADATA, VDI_FORM_OBJECT,
		  false, true },
		{ PROTO, VDI_FORMS_LIST | VDI_FORMS_PROTOBUF_METADATA, -1, false, false },
		{ PROTO META ",application/json" META, VDI_FORMS_LIST | VDI_FORMS_PROTOBUF_METADATA,
		  VDI_FORM_METADATA, true, true },
		{ PROTO META ",application/json" META, VDI_FORMS_LIST, VDI_FORM_METADATA, false, true },
		{ PROTO ";as=Table;g=meta.k8s.io;v=v1", VDI_FORMS_LIST | VDI_FORMS_PROTOBUF, -1, false,
		  false },
		{ PROTO ",application/json", VDI_FORMS_DISCOVERY, VDI_FORM_OBJECT, false, true },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_negotiated got = { VDI_FORM_OBJECT };
		bool		      fits = vdi_negotiate(vd_bytes_of(rows[i].accept), rows[i].forms, &got);

		assert_int_equal(fits ? (int) got.form : -1, rows[i].form);
		if (fits && (got.protobuf != rows[i].protobuf || got.json_too != rows[i].json_too))
			fail_msg("row %zu: %s", i, rows[i].accept);
	}
}

static void h110_v2_needs_its_exact_triple(void **state)
{
#define DISCOVERY(version) "application/json;g=apidiscovery.k8s.io;v=" version ";as=APIGroupDiscoveryList"
	static const struct {
		const char   *accept;
		enum vdi_form form;
	} rows[] = {
		{ DISCOVERY("v2"), VDI_FORM_DISCOVERY_V2 },
		{ DISCOVERY("v2") "," DISCOVERY("v2beta1") ",application/json",
		  VDI_FORM_DISCOVERY_V2 },						  /* kubectl 1.33 */
		{ DISCOVERY("v2") ",application/json", VDI_FORM_DISCOVERY_V2 },		  /* 1.37 */
		{ DISCOVERY("v2beta1") ",application/json", VDI_FORM_DISCOVERY_V2BETA1 }, /* up to 1.29 */
		{ "application/json;g=apidiscovery.k8s.io;v=v2,application/json", VDI_FORM_OBJECT },
		{ "application/json;v=v2;as=APIGroupDiscoveryList,application/json", VDI_FORM_OBJECT },
		{ "application/json;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json",
		  VDI_FORM_OBJECT },
		{ "application/json", VDI_FORM_OBJECT },
		{ "*/*", VDI_FORM_OBJECT },
	};
	struct vdi_negotiated got;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_true(vdi_negotiate(vd_bytes_of(rows[i].accept), VDI_FORMS_DISCOVERY, &got));
		if (got.form != rows[i].form)
			fail_msg("%s: %d", rows[i].accept, (int) got.form);
	}
	assert_true(vdi_negotiate(
		vd_bytes_of("application/"
			    "json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json"),
		VDI_FORMS_DISCOVERY, &got));
	assert_int_equal(got.form, VDI_FORM_OBJECT);
	assert_true(vdi_media_type_is(vd_bytes_of("Application/JSON ; charset=utf-8"), "application/json"));
	assert_false(vdi_media_type_is(vd_bytes_of("application/jsonx"), "application/json"));
}

static void r647_gzip_is_taken_by_its_name(void **state)
{
	static const struct {
		const char *accept;
		bool	    taken;
	} rows[] = {
		{ "gzip", true },
		{ " gzip\t", true },
		{ "br, gzip", true },
		{ "gzip,deflate", true },
		{ "gzip;q=0, gzip", true },
		{ ",,gzip,", true },
		{ "deflate;q=1.0,gzip, *", true },

		{ "", false },
		{ "*", false },
		{ "identity", false },
		{ "deflate", false },
		{ "gzip;q=1", false },
		{ "gzip;q=0", false },
		{ "gzip; q=0.5", false },
		{ "GZIP", false },
		{ "x-gzip", false },
		{ "gzipx", false },
		{ "gz ip", false },
		{ "\"gzip\"", false },
		{ ";gzip", false },
		{ "br;gzip", false },
		{ ",", false },
		{ ",,,;;;===", false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		if (vdi_negotiate_gzip(vd_bytes_of(rows[i].accept)) != rows[i].taken)
			fail_msg("\"%s\"", rows[i].accept);
	assert_false(vdi_negotiate_gzip(VD_BYTES_NONE));
	assert_true(vdi_negotiate_gzip((struct vd_bytes) { "gzip, br", 4 }));
	assert_false(vdi_negotiate_gzip((struct vd_bytes) { "gzip", 3 }));
}

/* Objects have the version of their kind, whatever version the client names. */
static void the_older_version_is_of_tables_and_metadata(void **state)
{
	static const struct {
		const char   *accept;
		enum vdi_form form;
		bool	      v1beta1;
	} rows[] = {
		{ TABLE, VDI_FORM_TABLE, false },
		{ "application/json;as=Table;v=v1beta1;g=meta.k8s.io", VDI_FORM_TABLE, true },
		{ "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io", VDI_FORM_METADATA,
		  true },
		{ "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
		  VDI_FORM_METADATA_LIST, true },
		{ "application/json;v=v1beta1;g=meta.k8s.io", VDI_FORM_OBJECT, false },
		{ "application/json;as=Table;v=v1beta1;g=meta.k8s.io;q=0.1,application/json", VDI_FORM_OBJECT,
		  false },
		{ "", VDI_FORM_OBJECT, false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_negotiated got = { .v1beta1 = true };

		assert_true(vdi_negotiate(vd_bytes_of(rows[i].accept), VDI_FORMS_LIST | VDI_FORMS_RESOURCE,
					  &got));
		assert_int_equal(got.form, rows[i].form);
		assert_int_equal(got.v1beta1, rows[i].v1beta1);
	}
}

static void what_is_not_acceptable_returns_nothing(void **state)
{
	static const char *const rows[] = { "text/html", "application/json;q=0", ",", PROTO };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_negotiated got = { VDI_FORM_TABLE, true, true, true };

		assert_false(vdi_negotiate(vd_bytes_of(rows[i]), VDI_FORMS_LIST, &got));
		assert_int_equal(got.form, VDI_FORM_TABLE);
		assert_true(got.protobuf && got.v1beta1 && got.json_too);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_acceptable_returns_nothing),
		cmocka_unit_test(clients_get_the_form_they_ask_for),
		cmocka_unit_test(the_older_version_is_of_tables_and_metadata),
		cmocka_unit_test(r648_protobuf_where_it_can_be_had),
		cmocka_unit_test(h110_v2_needs_its_exact_triple),
		cmocka_unit_test(r647_gzip_is_taken_by_its_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
