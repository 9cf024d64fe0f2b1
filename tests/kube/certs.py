"""certs.py - a certificate authority per cluster, made with the openssl command"""
import pathlib
import subprocess


def openssl(*args, stdin=None):
    return subprocess.run(["openssl", *args], input=stdin, check=True, capture_output=True).stdout


class Authority:
    def __init__(self, folder, name, days=30):
        self.dir = pathlib.Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.key, self.cert = self.dir / f"{name}.key", self.dir / f"{name}.crt"
        if not self.cert.exists():
            openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", str(days), "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    @property
    def pem(self):
        return self.cert.read_bytes()

    def issue(self, name, subject, usage, sans=(), days=30):
        """Returns (certificate file, key file)."""
        key, cert, ext = (self.dir / f"{name}.{e}" for e in ("key", "crt", "ext"))
        lines = [f"extendedKeyUsage={usage}"]
        if sans:
            lines.append("subjectAltName=" + ",".join(sans))
        ext.write_text("\n".join(lines) + "\n")
        req = openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-subj", subject, "-keyout", key)
        openssl("x509", "-req", "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-days", str(days), "-extfile", ext, "-out", cert, stdin=req)
        return cert, key
