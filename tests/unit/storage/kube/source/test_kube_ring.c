/* Cursors, whole revisions, and the bound. */
#include "kube_ring.h"

#include "vdtest.h"

static void push(struct vdi_kube_ring *ring, const char *key, vd_rev revision, size_t size)
{
	struct vdi_kube_change change = { 0 };
	char		      *value = calloc(1, size + 1);

	assert_status(vd_kv_new(vd_bytes_of(key), (struct vd_bytes) { value, size }, &change.kv), VD_OK);
	change.kv->mod_rev = revision;
	free(value);
	assert_status(vdi_kube_ring_reserve(ring), VD_OK);
	vdi_kube_ring_push(ring, &change);
}

static void a_start_is_found_by_revision(void **state)
{
	struct vdi_kube_ring ring;
	uint64_t	     cursor;

	vdi_kube_ring_init(&ring, 0, 1 << 20);
	vdi_kube_ring_reset(&ring, 10);
	assert_int_equal(vdi_kube_ring_shown(&ring), 10);
	assert_status(vdi_kube_ring_find(&ring, 11, &cursor), VD_OK);
	assert_int_equal(cursor, 0);
	for (vd_rev revision = 12; revision < 400; revision += 2)
		push(&ring, "k", revision, 1);
	assert_int_equal(vdi_kube_ring_shown(&ring), 10);
	vdi_kube_ring_show(&ring);
	assert_int_equal(vdi_kube_ring_shown(&ring), 398);
	assert_status(vdi_kube_ring_find(&ring, 10, &cursor), VD_EXPIRED);
	assert_status(vdi_kube_ring_find(&ring, 11, &cursor), VD_OK);
	assert_int_equal(vdi_kube_ring_at(&ring, cursor)->kv->mod_rev, 12);
	assert_status(vdi_kube_ring_find(&ring, 101, &cursor), VD_OK);
	assert_int_equal(vdi_kube_ring_at(&ring, cursor)->kv->mod_rev, 102);
	assert_status(vdi_kube_ring_find(&ring, 500, &cursor), VD_OK);
	assert_int_equal(cursor, ring.end);
	vdi_kube_ring_fini(&ring);
}

static void the_oldest_revision_is_dropped_as_a_whole(void **state)
{
	struct vdi_kube_ring ring;
	uint64_t	     cursor;

	vdi_kube_ring_init(&ring, 0, 4000);
	vdi_kube_ring_reset(&ring, 10);
	push(&ring, "a", 11, 1000);
	push(&ring, "b", 11, 1000);
	push(&ring, "c", 12, 1000);
	vdi_kube_ring_show(&ring);
	assert_int_equal(ring.first, 0);
	push(&ring, "d", 13, 1000);
	assert_int_equal(ring.first, 2);
	assert_int_equal(ring.after, 11);
	assert_status(vdi_kube_ring_find(&ring, 11, &cursor), VD_EXPIRED);
	assert_status(vdi_kube_ring_find(&ring, 12, &cursor), VD_OK);
	assert_true(ring.bytes <= 4000);
	/* The newest revision stays, however long it is. */
	vdi_kube_ring_show(&ring);
	push(&ring, "e", 14, 9000);
	push(&ring, "f", 14, 9000);
	vdi_kube_ring_show(&ring);
	assert_int_equal(ring.end - ring.first, 2);
	assert_int_equal(ring.after, 13);
	vdi_kube_ring_reset(&ring, 20);
	assert_int_equal(ring.bytes, 0);
	assert_int_equal(vdi_kube_ring_shown(&ring), 20);
	vdi_kube_ring_fini(&ring);
}

static void a_trim_drops_what_is_before_the_cursor(void **state)
{
	struct vdi_kube_ring ring;

	vdi_kube_ring_init(&ring, 2500, 1 << 20);
	vdi_kube_ring_reset(&ring, 10);
	push(&ring, "a", 11, 1000);
	push(&ring, "b", 11, 1000);
	push(&ring, "c", 12, 1000);
	push(&ring, "d", 13, 1000);
	vdi_kube_ring_show(&ring);
	vdi_kube_ring_trim(&ring, 0);
	assert_int_equal(ring.first, 0);
	vdi_kube_ring_trim(&ring, 1); /* inside revision 11 */
	assert_int_equal(ring.first, 0);
	vdi_kube_ring_trim(&ring, 2);
	assert_int_equal(ring.first, 2);
	assert_int_equal(ring.after, 11);
	vdi_kube_ring_trim(&ring, 4); /* bytes_min stays */
	assert_int_equal(ring.first, 2);
	push(&ring, "e", 14, 1000);
	vdi_kube_ring_show(&ring);
	vdi_kube_ring_trim(&ring, 5);
	assert_int_equal(ring.first, 3);
	/* The newest revision stays, also if nothing is to be kept; the next one is found. */
	ring.bytes_min = 0;
	vdi_kube_ring_trim(&ring, 5);
	assert_int_equal(ring.first, 4);
	assert_int_equal(ring.after, 13);
	assert_int_equal(vdi_kube_ring_shown(&ring), 14);
	vdi_kube_ring_fini(&ring);
}

static void torture_a_failed_reserve_changes_nothing(void **state)
{
	struct vdi_kube_ring ring;

	vdi_kube_ring_init(&ring, 0, 1 << 20);
	for (vd_rev revision = 1; revision <= 64; revision++)
		push(&ring, "k", revision, 1);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_kube_ring_reserve(&ring), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(vdi_kube_ring_at(&ring, i)->kv->mod_rev, i + 1);
	push(&ring, "k", 65, 1);
	for (uint64_t i = 0; i < 65; i++)
		assert_int_equal(vdi_kube_ring_at(&ring, i)->kv->mod_rev, i + 1);
	vdi_kube_ring_fini(&ring);
}

/* What readers were given before a restore cannot be continued after it; the newest ones are known. */
static void given_revisions_are_lost_together(void **state)
{
	struct vdi_kube_ring ring;

	vdi_kube_ring_init(&ring, 0, 1 << 20);
	vdi_kube_ring_reset(&ring, 10);
	ring.broken = 12;
	assert_false(vdi_kube_ring_can_continue(&ring, 9));
	assert_true(vdi_kube_ring_can_continue(&ring, 10));
	assert_false(vdi_kube_ring_can_continue(&ring, 12));
	vdi_kube_ring_give(&ring, 11);
	vdi_kube_ring_give(&ring, 11); /* takes one place */
	assert_int_equal(ring.given_count, 1);
	assert_true(vdi_kube_ring_can_continue(&ring, 11));
	vdi_kube_ring_lose(&ring);
	assert_int_equal(ring.given_count, 0);
	assert_true(vdi_kube_ring_is_lost(&ring, 11));
	assert_false(vdi_kube_ring_can_continue(&ring, 11));
	assert_true(vdi_kube_ring_can_continue(&ring, 12)); /* that of the state before */
	/* One more than there are places: the first one is forgotten. */
	for (vd_rev i = 0; i <= VDI_KUBE_GIVEN_MAX; i++)
		vdi_kube_ring_give(&ring, 1000 + i);
	vdi_kube_ring_lose(&ring);
	assert_false(vdi_kube_ring_is_lost(&ring, 1000));
	for (vd_rev i = 1; i <= VDI_KUBE_GIVEN_MAX; i++)
		assert_true(vdi_kube_ring_is_lost(&ring, 1000 + i));
	/* Nothing was given since: nothing more is lost. */
	vdi_kube_ring_lose(&ring);
	assert_int_equal(ring.lost_count, 1 + VDI_KUBE_GIVEN_MAX);
	for (vd_rev i = 0; ring.lost_count <= VDI_KUBE_LOST_MAX; i++) {
		vdi_kube_ring_give(&ring, 2000 + i);
		vdi_kube_ring_lose(&ring);
	}
	assert_false(vdi_kube_ring_is_lost(&ring, 11)); /* the oldest one */
	assert_true(vdi_kube_ring_is_lost(&ring, 2000));
	vdi_kube_ring_fini(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_found_by_revision),
		cmocka_unit_test(given_revisions_are_lost_together),
		cmocka_unit_test(the_oldest_revision_is_dropped_as_a_whole),
		cmocka_unit_test(a_trim_drops_what_is_before_the_cursor),
		cmocka_unit_test(torture_a_failed_reserve_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
