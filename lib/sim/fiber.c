/* ucontext. The sanitizers keep a shadow of each stack and must be told which one is in use. The address
 * sanitizer needs the bounds of the stack that is switched to; those of the thread's own stack are recorded
 * at the first switch away from it. */
#include <ucontext.h>

#include "fiber.h"
#include "sanitizer.h"

#if VDI_ADDRESS_SANITIZED
#include <sanitizer/common_interface_defs.h>
#endif
#if VDI_THREAD_SANITIZED
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_SIZE (512 << 10)
#define CANARY UINT64_C(0x7fb3a1d2c4e5f607) /* at the end towards which a stack grows */

struct vdi_fiber {
	ucontext_t context;
	uint64_t  *stack; /* NULL: the thread's own */
	void (*run)(void *arg);
	void *arg;
#if VDI_ADDRESS_SANITIZED
	struct vdi_fiber *switched_from;
	const void	 *bottom;
	size_t		  size;
	void		 *fake_stack;
#endif
#if VDI_THREAD_SANITIZED
	void *shadow;
#endif
};

static void before_switch(struct vdi_fiber *from, struct vdi_fiber *to)
{
#if VDI_ADDRESS_SANITIZED
	to->switched_from = from;
	__sanitizer_start_switch_fiber(&from->fake_stack, to->bottom, to->size);
#endif
#if VDI_THREAD_SANITIZED
	__tsan_switch_to_fiber(to->shadow, 0);
#endif
	(void) from;
	(void) to;
}

static void after_switch(struct vdi_fiber *self)
{
#if VDI_ADDRESS_SANITIZED
	struct vdi_fiber *before = self->switched_from;

	__sanitizer_finish_switch_fiber(self->fake_stack, &before->bottom, &before->size);
#endif
	(void) self;
}

static void enter(unsigned high, unsigned low)
{
	struct vdi_fiber *self =
		(struct vdi_fiber *) (((uintptr_t) high << 32) | low); /* makecontext passes only integers */

	after_switch(self);
	self->run(self->arg);
	VDI_CHECK(false); /* run has returned */
}

vd_status vdi_fiber_of_thread(struct vdi_fiber **ret_fiber)
{
	struct vdi_fiber *fiber = VDI_NEW(struct vdi_fiber);

	if (fiber == NULL)
		return VD_NOMEM;
#if VDI_THREAD_SANITIZED
	fiber->shadow = __tsan_get_current_fiber();
#endif
	*ret_fiber = fiber;
	return VD_OK;
}

vd_status vdi_fiber_new(void (*run)(void *arg), void *arg, struct vdi_fiber **ret_fiber)
{
	struct vdi_fiber *fiber = VDI_NEW(struct vdi_fiber);
	uint64_t	 *stack = vdi_alloc(STACK_SIZE);

	if (fiber == NULL || stack == NULL) {
		vdi_free(fiber);
		vdi_free(stack);
		return VD_NOMEM;
	}
	VDI_CHECK(getcontext(&fiber->context) == 0);
	fiber->run = run;
	fiber->arg = arg;
	fiber->stack = stack;
	fiber->stack[0] = CANARY;
	fiber->context.uc_stack.ss_sp = stack;
	fiber->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&fiber->context, (void (*)(void)) enter, 2,
		    (unsigned) ((uint64_t) (uintptr_t) fiber >> 32), (unsigned) (uintptr_t) fiber);
#if VDI_ADDRESS_SANITIZED
	fiber->bottom = stack;
	fiber->size = STACK_SIZE;
#endif
#if VDI_THREAD_SANITIZED
	fiber->shadow = __tsan_create_fiber(0);
#endif
	*ret_fiber = fiber;
	return VD_OK;
}

void vdi_fiber_free(struct vdi_fiber *fiber)
{
	if (fiber == NULL)
		return;
#if VDI_THREAD_SANITIZED
	if (fiber->stack)
		__tsan_destroy_fiber(fiber->shadow);
#endif
	vdi_free(fiber->stack);
	vdi_free(fiber);
}

void vdi_fiber_switch(struct vdi_fiber *from, struct vdi_fiber *to)
{
	VDI_CHECK(from->stack == NULL || from->stack[0] == CANARY);
	before_switch(from, to);
	VDI_CHECK(swapcontext(&from->context, &to->context) == 0);
	after_switch(from);
}
