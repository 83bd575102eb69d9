/* Unit tests of lib/base/trace.c and the panic path that prints it. */
#include <pthread.h>

#include "expect_panic.h"
#include "trace.h"

struct dump {
	char   text[4096];
	size_t size;
	int    lines;
};

static void collect(void *arg, const char *text, size_t size)
{
	struct dump *dump = arg;

	assert_true(dump->size + size < sizeof dump->text);
	memcpy(dump->text + dump->size, text, size);
	dump->size += size;
	dump->text[dump->size] = 0;
	dump->lines++;
}

static void *dump_empty(void *arg)
{
	vdi_trace_dump(collect, arg);
	return NULL;
}

static void the_last_facts_of_this_thread_are_kept(void **state)
{
	struct dump dump = { .size = 0 };
	pthread_t   thread;

	(void) state;
	for (int i = 0; i < 100; i++)
		vdi_trace("fact", i, -i);
	vdi_trace_dump(collect, &dump);
	assert_int_equal(dump.lines, VDI_TRACE_ENTRIES);
	assert_true(strncmp(dump.text, "fact 36 -36\nfact 37 -37\n", 24) == 0);
	assert_non_null(strstr(dump.text, "fact 99 -99\n"));
	dump = (struct dump) { .size = 0 };
	assert_int_equal(pthread_create(&thread, NULL, dump_empty, &dump), 0);
	pthread_join(thread, NULL);
	assert_int_equal(dump.lines, 0);
}

static void fail_after_two_facts(void)
{
	vdi_trace("opened", 1, 2);
	vdi_trace("closed", 3, 4);
	VDI_UNREACHABLE("on purpose");
}

static void a_failed_check_prints_them(void **state)
{
	(void) state;
	expect_panic(fail_after_two_facts, "test_trace.c");
	expect_panic(fail_after_two_facts, "unreachable: on purpose\nvedette: locks held: none\n");
	expect_panic(fail_after_two_facts, "vedette: trace: opened 1 2\nvedette: trace: closed 3 4\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_facts_of_this_thread_are_kept),
		cmocka_unit_test(a_failed_check_prints_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
