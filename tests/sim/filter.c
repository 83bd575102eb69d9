/* A second, naive evaluation of selectors: searches for words in the value, one by one. */
#include "viewer.h"

#include <stdio.h>

static void random_label(struct world *world, struct sim_filter *filter)
{
	static const char *const texts[LABEL_KINDS] = {
		"",	"app=%s", "app!=%s",	    "app in (%s,zz)", "app notin (%s,zz)",
		"tier", "!tier",  "app=%s,tier=%s",
	};

	filter->label = (enum sim_label) roll(world, LABEL_KINDS);
	snprintf(filter->app, sizeof filter->app, "%c", 'a' + (char) roll(world, 3));
	snprintf(filter->tier, sizeof filter->tier, "t%u", (unsigned) roll(world, 2));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	snprintf(filter->label_text, sizeof filter->label_text, texts[filter->label], filter->app,
		 filter->tier);
#pragma GCC diagnostic pop
}

static void random_field(struct world *world, struct sim_filter *filter)
{
	filter->field = (enum sim_field) roll(world, FIELD_KINDS);
	snprintf(filter->node, sizeof filter->node, "n%u", (unsigned) roll(world, 4));
	snprintf(filter->phase, sizeof filter->phase, "%s", chance(world, 500) ? "Running" : "Pending");
	switch (filter->field) {
	case FIELD_NODE:
		snprintf(filter->field_text, sizeof filter->field_text, "spec.nodeName=%s", filter->node);
		break;
	case FIELD_NOT_NODE:
		snprintf(filter->field_text, sizeof filter->field_text, "spec.nodeName!=%s", filter->node);
		break;
	case FIELD_PHASE:
		snprintf(filter->field_text, sizeof filter->field_text, "status.phase=%s", filter->phase);
		break;
	case FIELD_NAME:
		snprintf(filter->field_name, sizeof filter->field_name, "%c%02u", filter->cacher ? 'w' : 'p',
			 (unsigned) roll(world, world->swarm.names));
		snprintf(filter->field_text, sizeof filter->field_text, "metadata.name=%s",
			 filter->field_name);
		break;
	case FIELD_NAMESPACE:
		if (filter->cacher) {
			filter->field = FIELD_NONE;
			break;
		}
		snprintf(filter->field_name, sizeof filter->field_name, "ns%u",
			 (unsigned) roll(world, world->swarm.namespaces));
		snprintf(filter->field_text, sizeof filter->field_text, "metadata.namespace=%s",
			 filter->field_name);
		break;
	case FIELD_NODE_PHASE:
		snprintf(filter->field_text, sizeof filter->field_text, "spec.nodeName=%s,status.phase=%s",
			 filter->node, filter->phase);
		break;
	default: break;
	}
}

void filter_random(struct world *world, struct sim_filter *filter)
{
	memset(filter, 0, sizeof *filter);
	filter->cacher = chance(world, 750) ? 0 : 1;
	if (filter->cacher == 0 && chance(world, 400))
		snprintf(filter->namespace_name, sizeof filter->namespace_name, "ns%u",
			 (unsigned) roll(world, world->swarm.namespaces));
	if ((filter->cacher == 1 || filter->namespace_name[0]) && chance(world, 150))
		snprintf(filter->name, sizeof filter->name, "%c%02u", filter->cacher ? 'w' : 'p',
			 (unsigned) roll(world, world->swarm.names));
	if (chance(world, 450))
		random_label(world, filter);
	if (filter->name[0] == 0 && chance(world, 450))
		random_field(world, filter);
}

static bool label_wants(const struct sim_filter *filter, const struct oracle_facts *facts)
{
	bool same_app = strcmp(facts->app, filter->app) == 0;

	switch (filter->label) {
	case LABEL_EQUAL:
	case LABEL_IN: return same_app;
	case LABEL_NOT_EQUAL:
	case LABEL_NOT_IN: return !same_app;
	case LABEL_EXISTS: return facts->tier[0] != 0;
	case LABEL_NOT_EXISTS: return facts->tier[0] == 0;
	case LABEL_BOTH: return same_app && strcmp(facts->tier, filter->tier) == 0;
	default: return true;
	}
}

static bool field_wants(const struct sim_filter *filter, const struct oracle_key *key,
			const struct oracle_facts *facts)
{
	switch (filter->field) {
	case FIELD_NODE: return strcmp(facts->node, filter->node) == 0;
	case FIELD_NOT_NODE: return strcmp(facts->node, filter->node) != 0;
	case FIELD_PHASE: return strcmp(facts->phase, filter->phase) == 0;
	case FIELD_NAME: return strcmp(key->name, filter->field_name) == 0;
	case FIELD_NAMESPACE: return strcmp(key->namespace_name, filter->field_name) == 0;
	case FIELD_NODE_PHASE:
		return strcmp(facts->node, filter->node) == 0 && strcmp(facts->phase, filter->phase) == 0;
	default: return true;
	}
}

bool filter_wants(const struct oracle *oracle, const struct sim_filter *filter,
		  const struct oracle_record *record)
{
	const struct oracle_key *key;

	if (record == NULL || record->is_delete)
		return false;
	key = &oracle->keys[record->key];
	return key->resource == (filter->cacher == 0 ? ORACLE_PODS : ORACLE_WIDGETS) &&
	       (!filter->namespace_name[0] || strcmp(filter->namespace_name, key->namespace_name) == 0) &&
	       (!filter->name[0] || strcmp(filter->name, key->name) == 0) &&
	       label_wants(filter, &record->facts) && field_wants(filter, key, &record->facts);
}

size_t filter_state(const struct oracle *oracle, const struct sim_filter *filter, vd_rev revision,
		    const struct oracle_record *ret_records[])
{
	size_t count = 0;

	for (int i = 0; i < oracle->key_count; i++) {
		const struct oracle_record *record = oracle_at(oracle, i, revision);
		size_t			    at = count;

		if (!filter_wants(oracle, filter, record))
			continue;
		for (;
		     at > 0 && strcmp(oracle->keys[ret_records[at - 1]->key].text, oracle->keys[i].text) > 0;
		     at--)
			ret_records[at] = ret_records[at - 1];
		ret_records[at] = record;
		count++;
	}
	return count;
}
