// The table of fields as a JSON schema (draft 2020-12), for editors that complete and check as one
// types.
#include "evals/experiment.h"
#include "evals/experiment_fields.h"

#include <stdlib.h>
#include <string.h>

#define NAME_PATTERN "^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"
#define SHARE_PATTERN "^(100(\\.0{1,4})?|[0-9]{1,2}(\\.[0-9]{1,4})?)%$"
#define PERCENT_PATTERN "(100(\\.0{1,3})?|[0-9]{1,2}(\\.[0-9]{1,3})?)%"
#define ANCHOR_PATTERN "in_system|first_user|last_user|before_filler|after_filler|in_place"
#define DEPTH_PATTERN "start|middle|end|" PERCENT_PATTERN
#define PLACE_PATTERN "(" DEPTH_PATTERN "|" ANCHOR_PATTERN ")"
#define PLACES_PATTERN PLACE_PATTERN "(\\+" PLACE_PATTERN ")*"

static json_t *object_schema(const struct field *fields);

static void put_c(json_t *o, const char *key, const char *value) {
    json_put(o, key, json_text_c(value));
}

// Bounds in millionths; whole numbers stay whole.
static json_t *millionths(int64_t value) {
    return value % 1000000 == 0 ? json_integer(value / 1000000) : json_real((double)value / 1e6);
}

static void string_or_number(json_t *o, const char *pattern, json_t *most) {
    json_t *types = json_array();
    json_array_append_new(types, json_text_c("string"));
    json_array_append_new(types, json_text_c("number"));
    json_put(o, "type", types);
    put_c(o, "pattern", pattern);
    json_put(o, "minimum", json_integer(0));
    json_put(o, "maximum", most);
}

static json_t *words_schema(const char *const *words) {
    json_t *list = json_array();
    for (; *words != NULL; words++) json_array_append_new(list, json_text_c(*words));
    return list;
}

static json_t *one_schema(const struct field *f) {
    json_t *o = json_object();
    if (f->type == FIELD_OBJECT && f->shared != NULL) {
        json_put(o, "$ref", json_sprintf("#/$defs/%s", f->shared));
        return o;
    }
    if (f->type == FIELD_OBJECT) {
        json_decref(o);
        return object_schema(f->fields);
    }
    switch (f->type) {
    case FIELD_INTEGER:
        put_c(o, "type", "integer");
        json_put(o, "minimum", json_integer(f->least));
        json_put(o, "maximum", json_integer(f->most));
        break;
    case FIELD_DECIMAL:
        put_c(o, "type", "number");
        json_put(o, "minimum", millionths(f->least));
        json_put(o, "maximum", millionths(f->most));
        break;
    case FIELD_SHARE: string_or_number(o, SHARE_PATTERN, json_integer(1)); break;
    case FIELD_PLACE:
        if (f->flags & FIELD_ANCHOR) {
            put_c(o, "type", "string");
            put_c(o, "pattern",
                  "^(" PLACE_PATTERN "\\+)*(" ANCHOR_PATTERN ")(\\+" PLACE_PATTERN ")*$");
        } else {
            string_or_number(o,
                             f->flags & FIELD_DEPTH ? "^(" DEPTH_PATTERN ")(\\+(" DEPTH_PATTERN
                                                      "))*$"
                             : f->flags & FIELD_ABSENT ? "^(absent|" PLACES_PATTERN ")$"
                             : f->flags & FIELD_ORDER  ? "^(order-[0-9]+|" PLACES_PATTERN ")$"
                                                       : "^" PLACES_PATTERN "$",
                             json_integer(100));
        }
        break;
    case FIELD_BOOLEAN: put_c(o, "type", "boolean"); break;
    case FIELD_WORD: json_put(o, "enum", words_schema(f->words)); break;
    case FIELD_NAME:
        put_c(o, "type", "string");
        put_c(o, "pattern", NAME_PATTERN);
        break;
    case FIELD_TEXT: put_c(o, "type", "string"); break;
    case FIELD_JSON: put_c(o, "type", "object"); break;
    default:
        put_c(o, "type", "string");
        json_put(o, "minLength", json_integer(1));
        break;
    }
    return o;
}

static json_t *fallback_schema(const struct field *f) {
    json_t *list;
    switch (f->shape == SHAPE_LIST ? FIELD_OBJECT : f->type) {
    case FIELD_INTEGER: return json_integer(strtoll(f->fallback, NULL, 10));
    case FIELD_DECIMAL: return json_integer(strtoll(f->fallback, NULL, 10));
    case FIELD_BOOLEAN: return json_boolean(strcmp(f->fallback, "true") == 0);
    case FIELD_OBJECT:
        list = json_array();
        for (const char *p = f->fallback; *p != '\0';) {
            size_t n = strcspn(p, " ");
            json_array_append_new(list, json_text((struct str){p, n}));
            p += n + (p[n] == ' ');
        }
        return list;
    default: return json_text_c(f->fallback);
    }
}

static json_t *field_schema(const struct field *f) {
    json_t *one = one_schema(f), *o = one;
    if (f->shape == SHAPE_LIST) {
        o = json_object();
        put_c(o, "type", "array");
        json_put(o, "items", one);
        json_put(o, "maxItems",
                 json_integer(f->type == FIELD_OBJECT ? FIELD_OBJECTS_MOST : FIELD_ITEMS_MOST));
        if (f->items_least > 0) json_put(o, "minItems", json_integer(f->items_least));
    } else if (f->shape == SHAPE_MAP) {
        json_t *names = json_object();
        put_c(names, "pattern", NAME_PATTERN);
        o = json_object();
        put_c(o, "type", "object");
        json_put(o, "propertyNames", names);
        json_put(o, "additionalProperties", one);
    }
    put_c(o, "description", f->help);
    if (f->fallback != NULL) json_put(o, "default", fallback_schema(f));
    return o;
}

static void add_choice(json_t *choices, const char *key) {
    json_t *choice = json_object(), *keys = json_array();
    json_array_append_new(keys, json_text_c(key));
    json_put(choice, "required", keys);
    json_array_append_new(choices, choice);
}

// Exactly one of a key and those that may stand for it.
static json_t *either_schema(const struct field *f) {
    json_t *choices = json_array(), *o = json_object();
    add_choice(choices, f->key);
    for (int i = 0; f->instead[i] != NULL; i++) add_choice(choices, f->instead[i]);
    json_put(o, "oneOf", choices);
    return o;
}

// Keys that go with another one, and what that one needs.
static void add_dependence(json_t *dependent, const char *key, const char *needs) {
    json_t *list = json_object_get(dependent, key);
    if (list == NULL) {
        list = json_array();
        json_put(dependent, key, list);
    }
    json_array_append_new(list, json_text_c(needs));
}

static json_t *object_schema(const struct field *fields) {
    json_t *dependent = json_object();
    json_t *o = json_object(), *properties = json_object(), *required = json_array();
    json_t *either = json_array();
    for (const struct field *f = fields; f->key != NULL; f++) {
        if (f->flags & FIELD_STORED) continue;
        json_put(properties, f->key, field_schema(f));
        if (f->with != NULL) add_dependence(dependent, f->key, f->with);
        if (f->with != NULL && (f->flags & FIELD_REQUIRED))
            add_dependence(dependent, f->with, f->key);
        else if (f->instead != NULL)
            json_array_append_new(either, either_schema(f));
        else if (f->flags & FIELD_REQUIRED)
            json_array_append_new(required, json_text_c(f->key));
    }
    put_c(o, "type", "object");
    json_put(o, "additionalProperties", json_false());
    json_put(o, "required", required);
    if (json_object_size(dependent) > 0) json_put(o, "dependentRequired", json_incref(dependent));
    json_decref(dependent);
    if (json_array_size(either) > 0) json_put(o, "allOf", json_incref(either));
    json_decref(either);
    json_put(o, "properties", properties);
    return o;
}

// Tables that stand in several places, each once under its name.
static json_t *shared_schemas(void) {
    json_t *defs = json_object();
    json_put(defs, "check", object_schema(check_fields));
    return defs;
}

json_t *experiment_schema(void) {
    json_t *schema = json_object(), *object = object_schema(experiment_fields);
    put_c(schema, "$schema", "https://json-schema.org/draft/2020-12/schema");
    put_c(schema, "title", "lacuna experiment");
    put_c(schema, "description",
          "An experiment file of lacuna. The program checks more than a schema can say; "
          "`lacuna plan FILE` names every error with line and column.");
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) json_put(schema, key, json_incref(value));
    json_decref(object);
    json_put(schema, "$defs", shared_schemas());
    return schema;
}
