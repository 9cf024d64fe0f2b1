# docs/: man pages in POD, protocol, schemas
