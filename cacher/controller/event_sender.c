/* The JSON of Events has the members that client-go's recorder sets. */
#include <stdio.h>

#include "event_sender.h"
#include "k8s_time.h"
#include "out.h"

#define NS_PER_S 1000000000
#define HEX_SIZE 17 /* "." and 16 digits */

static const struct vd_kube_resource events = { .version = "v1", .plural = "events", .kind = "Event" };

static bool is_plain(unsigned char letter)
{
	return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
}

void vdi_event_name(struct vdi_event *event, int64_t unique_ns)
{
	struct vd_bytes name = event->fields[VDI_EVENT_NAME];
	size_t		size = VDI_MIN(name.size, (size_t) VDI_EVENT_NAME_SIZE - 1 - HEX_SIZE);
	const char     *from = name.data;

	for (size_t i = 0; i < size; i++) {
		unsigned char letter = (unsigned char) from[i];

		if (letter >= 'A' && letter <= 'Z')
			letter = (unsigned char) (letter - 'A' + 'a');
		/* A dot separates labels, which begin and end with a letter or digit. */
		if (!is_plain(letter) &&
		    !(letter == '.' && i && i + 1 < size && is_plain((unsigned char) event->name[i - 1]) &&
		      is_plain((unsigned char) from[i + 1])))
			letter = i == 0 || i + 1 == size ? 'x' : '-';
		event->name[i] = (char) letter;
	}
	(void) snprintf(event->name + size, HEX_SIZE + 1, ".%llx", (unsigned long long) unique_ns);
}

static struct vd_bytes namespace_of(const struct vdi_event *event)
{
	struct vd_bytes namespace_name = event->fields[VDI_EVENT_NAMESPACE];

	return namespace_name.size ? namespace_name : vd_bytes_of("default");
}

static void write_time(struct vdi_out *out, const char *key, vd_wall time)
{
	char text[VDI_K8S_TIME_SIZE];

	vdi_k8s_time_format(time, text);
	vdi_out_member(out, key, vd_bytes_of(text));
}

static void write_message(struct vdi_out *out, const struct vdi_event *event)
{
	struct vd_bytes message = event->fields[VDI_EVENT_MESSAGE];
	char		text[sizeof VDI_EVENT_COMBINED_PREFIX + VD_EVENT_MESSAGE_SIZE_MAX];
	int size = snprintf(text, sizeof text, "%s%.*s", event->is_combined ? VDI_EVENT_COMBINED_PREFIX : "",
			    (int) message.size, message.size ? (const char *) message.data : "");

	vdi_out_key(out, "message");
	vdi_out_string(out, (struct vd_bytes) { text, (size_t) size });
}

static void write_object(struct vdi_out *out, const struct vdi_event *event)
{
	static const struct {
		const char	    *key;
		enum vdi_event_field field;
	} members[] = {
		{ "kind", VDI_EVENT_KIND },
		{ "namespace", VDI_EVENT_NAMESPACE },
		{ "name", VDI_EVENT_NAME },
		{ "uid", VDI_EVENT_UID },
		{ "apiVersion", VDI_EVENT_API_VERSION },
		{ "resourceVersion", VDI_EVENT_RESOURCE_VERSION },
		{ "fieldPath", VDI_EVENT_FIELD_PATH },
	};

	vdi_out_key(out, "involvedObject");
	vdi_out_raw(out, "{");
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(members); i++)
		vdi_out_member(out, members[i].key, event->fields[members[i].field]);
	vdi_out_raw(out, "}");
}

static void write_event(struct vdi_out *out, const struct vdi_event_sender *sender,
			const struct vdi_event *event)
{
	vdi_out_raw(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{");
	vdi_out_member(out, "name", vd_bytes_of(event->name));
	vdi_out_member(out, "namespace", namespace_of(event));
	vdi_out_raw(out, "}");
	write_object(out, event);
	vdi_out_member(out, "reason", event->fields[VDI_EVENT_REASON]);
	write_message(out, event);
	vdi_out_key(out, "source");
	vdi_out_raw(out, "{");
	vdi_out_member(out, "component", vd_bytes_of(sender->component));
	vdi_out_member(out, "host", vd_bytes_of(sender->host));
	vdi_out_raw(out, "}");
	write_time(out, "firstTimestamp", event->first);
	write_time(out, "lastTimestamp", event->last);
	vdi_out_printf(out, ",\"count\":%u,\"eventTime\":null", event->count);
	vdi_out_member(out, "type", event->fields[VDI_EVENT_TYPE]);
	vdi_out_member(out, "reportingComponent", vd_bytes_of(sender->component));
	vdi_out_member(out, "reportingInstance", vd_bytes_of(sender->host));
	vdi_out_raw(out, "}");
}

static void write_patch(struct vdi_out *out, const struct vdi_event *event)
{
	vdi_out_printf(out, "{\"count\":%u", event->count);
	write_time(out, "lastTimestamp", event->last);
	write_message(out, event);
	vdi_out_raw(out, "}");
}

vd_status vdi_event_send(const struct vdi_event_sender *sender, const struct vdi_event *event, bool is_create,
			 vd_kube_answer_fn done, void *arg)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	struct vdi_out	    out = VDI_OUT_INIT;
	char		    path[VDI_KUBE_PATH_MAX];
	vd_status	    status;

	VDI_TRY(vdi_kube_object_path(&events, namespace_of(event),
				     is_create ? VD_BYTES_NONE : vd_bytes_of(event->name), NULL, path));
	if (is_create)
		write_event(&out, sender, event);
	else
		write_patch(&out, event);
	call.method = is_create ? "POST" : "PATCH";
	call.content_type = is_create ? NULL : "application/strategic-merge-patch+json";
	call.path = path;
	call.body = vdi_out_slice(&out);
	status = out.failed ? VD_NOMEM : sender->requests.send(sender->requests.peer, &call, done, arg);
	vdi_out_fini(&out);
	return status;
}
