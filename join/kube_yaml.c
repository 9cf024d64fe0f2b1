/* kube_yaml.c - YAML to JSON
 *
 * libyaml turns an alias into a second edge to one node, so a small file can be an exponentially
 * large tree: nodes are counted as they are copied, not as they are stored.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "join/kube_config.h"

enum { MAX_NODES = 20000, MAX_DEPTH = 32 };

struct walk {
  yaml_document_t *doc;
  bool typed;
  int nodes, depth;
  struct err *e;
};

static json_t *convert (struct walk *w, int id);

static json_t *
scalar (const struct walk *w, const yaml_node_t *n)
{
  const char *s = (const char *) n->data.scalar.value;
  size_t len = n->data.scalar.length;
  char *end;
  long long i;
  json_t *j;

  if (w->typed && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
    if (strcmp (s, "true") == 0 || strcmp (s, "false") == 0)
      return json_boolean (*s == 't');
    if (!*s || strcmp (s, "~") == 0 || strcmp (s, "null") == 0)
      return json_null ();
    i = strtoll (s, &end, 10);
    if (end != s && !*end && len <= 18)
      return json_integer (i);
  }
  j = json_stringn (s, len);
  if (!j)
    err_set (w->e, ERR_INVALID, "YAML line %zu: a string that is no UTF-8", n->start_mark.line + 1);
  return j;
}

static json_t *
sequence (struct walk *w, const yaml_node_t *n)
{
  json_t *list = json_array ();

  for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++)
    if (json_array_append_new (list, convert (w, *i)) < 0) {
      json_decref (list);
      return NULL;
    }
  return list;
}

static json_t *
mapping (struct walk *w, const yaml_node_t *n)
{
  AUTO_JSON json_t *obj = json_object ();

  for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
    yaml_node_t *key = yaml_document_get_node (w->doc, p->key);
    const char *name;

    if (!key || key->type != YAML_SCALAR_NODE ||
        strlen ((char *) key->data.scalar.value) != key->data.scalar.length) {
      err_set (w->e, ERR_INVALID, "YAML line %zu: a key that is no string", n->start_mark.line + 1);
      return NULL;
    }
    name = (const char *) key->data.scalar.value;
    if (json_object_get (obj, name)) {
      err_set (w->e, ERR_INVALID, "YAML line %zu: %.60s stands there twice",
               key->start_mark.line + 1, name);
      return NULL;
    }
    json_t *value = convert (w, p->value);

    if (!value)
      return NULL;
    if (json_object_set_new (obj, name, value) < 0) {
      err_set (w->e, ERR_INVALID, "YAML line %zu: a key that is no UTF-8",
               key->start_mark.line + 1);
      return NULL;
    }
  }
  return STEAL (obj);
}

static json_t *
convert (struct walk *w, int id)
{
  yaml_node_t *n = yaml_document_get_node (w->doc, id);
  json_t *j = NULL;

  if (!n || w->e->kind != ERR_NONE)
    return NULL;
  if (++w->nodes > MAX_NODES || w->depth >= MAX_DEPTH) {
    err_set (w->e, ERR_INVALID, "YAML has more than %d nodes or is deeper than %d", MAX_NODES,
             MAX_DEPTH);
    return NULL;
  }
  w->depth++;
  if (n->type == YAML_SCALAR_NODE)
    j = scalar (w, n);
  else if (n->type == YAML_SEQUENCE_NODE)
    j = sequence (w, n);
  else if (n->type == YAML_MAPPING_NODE)
    j = mapping (w, n);
  w->depth--;
  return j;
}

json_t *
yaml_parse (const char *text, size_t len, bool typed, struct err *e)
{
  struct err why = ERR_INIT;
  yaml_parser_t parser;
  yaml_document_t doc;
  struct walk w = { .doc = &doc, .typed = typed, .e = &why };
  yaml_node_t *root;
  json_t *j = NULL;

  if (!yaml_parser_initialize (&parser))
    abort ();
  yaml_parser_set_input_string (&parser, (const unsigned char *) text, len);
  if (!yaml_parser_load (&parser, &doc)) {
    err_set (e, ERR_INVALID, "YAML line %zu: %s", parser.problem_mark.line + 1,
             parser.problem ? parser.problem : "not readable");
    yaml_parser_delete (&parser);
    return NULL;
  }
  root = yaml_document_get_root_node (&doc);
  if (root)
    j = convert (&w, 1);
  yaml_document_delete (&doc);
  yaml_parser_delete (&parser);
  if (!j)
    err_set (e, ERR_INVALID, "%s", why.kind ? why.text : "YAML: there is nothing in it");
  return j;
}
