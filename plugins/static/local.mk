# static
