/* xml.c - an answer in XML as JSON; all contact with libxml2
 *
 * An element whose children are all <item> or <member> becomes an array, one with other children an
 * object, one without a text.  An empty list is therefore "", which no reader takes for rows.
 * Documents with a DTD are refused unread: no service sends one, and entities live there.
 */
#include "config.h"

#include <libxml/parser.h>
#include <string.h>

#include "plugins/aws/aws.h"

enum { DEPTH_MAX = 24, ELEMENTS_MAX = 600 * 1000 };

static bool
sane (const char *text, size_t len)
{
  size_t tags = 0;

  if (len == 0 || len > INT32_MAX)
    return false;
  for (const char *p = text; (p = memchr (p, '<', len - (size_t) (p - text))); p++)
    if (++tags > ELEMENTS_MAX || strncmp (p, "<!DOCTYPE", 9) == 0 ||
        strncmp (p, "<!ENTITY", 8) == 0)
      return false;
  return tags > 0;
}

static bool
is_row (const xmlNode *n)
{
  return strcmp ((const char *) n->name, "item") == 0 ||
         strcmp ((const char *) n->name, "member") == 0;
}

static const xmlNode *
element (const xmlNode *n)
{
  while (n && n->type != XML_ELEMENT_NODE)
    n = n->next;
  return n;
}

static json_t *
text_of (const xmlNode *n)
{
  xmlChar *text = xmlNodeGetContent (n);
  json_t *j = json_string (text ? (const char *) text : "");

  xmlFree (text);
  return j;
}

static json_t *
convert (const xmlNode *n, int depth)
{
  const xmlNode *child = element (n->children);
  json_t *j;

  if (!child)
    return text_of (n);
  if (depth == DEPTH_MAX)
    return NULL;
  j = is_row (child) ? json_array () : json_object ();
  for (; child; child = element (child->next)) {
    json_t *value = convert (child, depth + 1);

    /* A second element of one name, or a row among other things, is of no shape we know. */
    if (!value || is_row (child) != json_is_array (j) ||
        (json_is_object (j) && json_object_get (j, (const char *) child->name))) {
      json_decref (value);
      json_decref (j);
      return NULL;
    }
    if (json_is_array (j))
      json_array_append_new (j, value);
    else
      json_object_set_new (j, (const char *) child->name, value);
  }
  return j;
}

json_t *
xml_parse (const char *text, size_t len, char root[static XML_NAME_MAX])
{
  json_t *j = NULL;
  const xmlNode *top;
  xmlDoc *doc;

  root[0] = '\0';
  if (!text || !sane (text, len))
    return NULL;
  doc =
      xmlReadMemory (text, (int) len, NULL, NULL,
                     XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING | XML_PARSE_NOCDATA);
  top = doc ? xmlDocGetRootElement (doc) : NULL;
  if (top) {
    snprintf (root, XML_NAME_MAX, "%s", (const char *) top->name);
    j = convert (top, 0);
  }
  xmlFreeDoc (doc);
  return j;
}
