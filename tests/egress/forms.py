"""Spellings of forbidden addresses: URLs as a tenant gives them, each with the trick it tries.

From class F of the threat catalogue, the URL standard's host tests and write-ups of request forgery; each is sent to the
host's side unchanged, and through a script.
"""

#: Loopback and "this host" in every notation that some reader understands.
LOOPBACK = [
    "127.0.0.1", "127.0.0.2", "127.1", "127.0.1", "127.255.255.254", "0", "0.0.0.0", "0.0.0", "0x7f.0.0.1",
    "0x7f000001", "0x7f.1", "0X7F.0.0.1", "0177.0.0.1", "0177.1", "0177.0.1", "017700000001", "2130706433",
    "00000000177.0.0.1", "127.0.0.1.", "127.0.0.01", "0x7f.0x0.0x0.0x1", "0x7f.00000000000.1", "127.0x0.1",
    "4294967296", "6425673729", "127.0.0.256", "127.0.0.1.1", "127.0.0.-1", "127.00000.00000.00001", "0127.0.0.1",
    "①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "%31%32%37.0.0.1", "127.0.0.1%00", "127.0.0.1%20",
    "127.0.0.1%2eexample.com", "127%2e0%2e0%2e1", "127.0.0.1%0a", "%30x7f.1", "localhost", "LOCALHOST", "localhost.",
    "LoCaLhOsT", "foo.localhost", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "local%68ost", "localhost%00.example.com", "localhost.localdomain",
    "ip6-localhost", "loopback", "１27.0.0.1", "127.0.0.1\u00ad",
]  # fmt: skip
#: The same and more through IPv6, and IPv4 inside IPv6.
SIX = [
    "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[::FFFF:7F00:0001]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]", "[::ffff:10.0.0.1]", "[::ffff:0:127.0.0.1]", "[::ffff:0:a9fe:a9fe]", "[::127.0.0.1]",
    "[::7f00:1]", "[::169.254.169.254]", "[64:ff9b::127.0.0.1]", "[64:ff9b::169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]", "[64:ff9b::a00:1]", "[64:ff9b:1::1]", "[64:ff9b:1:ffff::169.254.169.254]",
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2002:a00:1::1]", "[2001:0:7f00:1::]",
    "[2001:0:53aa:64c:0:5efe:127.0.0.1]", "[2001:470::5efe:127.0.0.1]", "[2001:470::200:5efe:a9fe:a9fe]",
    "[fe80::1]", "[fe80::1%25lo]", "[fe80::1%lo]", "[::1%25lo]", "[::1%eth0]", "[fc00::1]", "[fd00::1]",
    "[fd00:ec2::254]", "[fd20:ce::254]", "[fec0::1]", "[ff02::1]", "[ff05::2]", "[2001:db8::1]", "[3fff::1]",
    "[100::1]", "[5f00::1]", "[2001:10::1]", "[2001:20::1]", "[::ffff:0.0.0.0]", "[::1", "::1", "[::1].example.com",
    "[1::1::1]", "[::1]x", "[v1.::1]", "[::127.0.0.1%25lo]",
]  # fmt: skip
#: Metadata services, private networks, and unassigned ones.
INSIDE = [
    "169.254.169.254", "169.254.170.2", "169.254.0.1", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376",
    "0251.254.169.254", "169.254.43518", "0xA9.0xFE.0xA9.0xFE", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "192.0.0.8", "192.88.99.1", "198.18.0.1", "198.19.255.254", "10.0.0.1", "10.255.255.254", "167772161",
    "012.0.0.1", "10.1", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.1", "3232235521", "0300.0250.0.1",
    "100.64.0.1", "100.127.255.254", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255", "254.255.255.254", "metadata", "metadata.google.internal", "instance-data",
    "kubernetes.default.svc", "intranet",
]  # fmt: skip
#: Whole URLs: schemes, ports, names of users, characters that readers see differently.
WHOLE = [
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://127.0.0.1/",
    "gopher://127.0.0.1:8080/_x",
    "dict://127.0.0.1:8080/",
    "ws://127.0.0.1/",
    "data:text/plain,x",
    "javascript:1",
    "jar:http://127.0.0.1!/",
    "unix:/run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
    "ldap://127.0.0.1/",
    "tftp://127.0.0.1/x",
    "about:blank",
    "blob:http://127.0.0.1/x",
    "HTTP://127.0.0.1/",
    "hTTp://LOCALHOST/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "http:///127.0.0.1/",
    "http:////127.0.0.1/",
    "//127.0.0.1/",
    "127.0.0.1",
    "http://public.example@127.0.0.1/",
    "http://127.0.0.1@public.example/",
    "http://public.example:80@127.0.0.1/",
    "http://user:pass@127.0.0.1/",
    "http://127.0.0.1#@public.example/",
    "http://127.0.0.1\\@public.example/",
    "http://public.example\\@127.0.0.1/",
    "http://public.example%40127.0.0.1/",
    "http://127.0.0.1%23@public.example/",
    "http:\\\\127.0.0.1\\",
    "http://127.0.0.1?@public.example/",
    "http://127.0.0.1:80:80/",
    "http://127.0.0.1:0080/",
    "http://127.0.0.1:/",
    "http://127.0.0.1:+80/",
    "http://127.0.0.1:８０/",
    "http://127.0.0.1: 80/",
    "http://12\t7.0.0.1/",
    "http://127.0.0\n.1/",
    "http://127.0.\r\n0.1/",
    " http://127.0.0.1/",
    "http://127.0.0.1/ HTTP/1.1\r\nX: y",
    "http://public.example/\r\nHost: 127.0.0.1",
    "http://[::1]:22/",
    "http://public.example:22/",
    "http://public.example:25/",
    "http://public.example:6379/",
    "http://public.example:5432/",
    "http://public.example:11211/",
    "http://public.example:0/",
    "http://public.example:65536/",
    "http://public.example:-1/",
    "http://public.example:99999999999/",
    "http:// /",
    "http://",
    "",
    "http://.",
    "http://..",
    "http://-/",
    "http://*/",
    "http://public.example\u3002/",
    "http://xn--/",
    "http://a b/",
    "http://\u0000/",
    "http://127.0.0.1\u2044x/",
    "http://\u202e127.0.0.1/",
    "http://[::ffff:127.0.0.1]:80/",
    "http://0x7f.1:80/",
    "http://localhost:443/",
]
#: Names of the attacker's own zone: what each answers to A and AAAA, from question to question. None may be reached by any.
ZONE: dict[str, list[list[str]]] = {
    "loop.evil.example": [["127.0.0.1"]],
    "loop6.evil.example": [["::1"]],
    "mapped.evil.example": [["::ffff:127.0.0.1"]],
    "nat64.evil.example": [["64:ff9b::a9fe:a9fe"]],
    "sixtofour.evil.example": [["2002:7f00:1::"]],
    "meta.evil.example": [["169.254.169.254"]],
    "zero.evil.example": [["0.0.0.0"]],
    "ten.evil.example": [["10.0.0.1"]],
    "carrier.evil.example": [["100.100.100.200"]],
    "mixed.evil.example": [["93.184.216.34", "127.0.0.1"]],
    "mixed6.evil.example": [["93.184.216.34", "::1"]],
    "mixedlast.evil.example": [["93.184.216.34", "1.1.1.1", "8.8.8.8", "10.0.0.1"]],
    "alias.evil.example": [[">loop.evil.example"]],
    "alias2.evil.example": [[">alias.evil.example"]],
    "aliaslocal.evil.example": [[">localhost"]],
    "localhost": [["127.0.0.1", "::1"]],
    "nothing.evil.example": [[]],
    "many.evil.example": [[f"93.184.{high}.{low}" for high in (1, 2) for low in range(1, 40)]],
    "xn--hackname-6fb.evil.example": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
}
#: Public at the first question and inside at every later one: where two looks see two places.
REBINDING: dict[str, list[list[str]]] = {
    "rebind.evil.example": [["93.184.216.34"], ["127.0.0.1"]],
    "rebind6.evil.example": [["2606:2800:220:1::1"], ["::1"]],
    "flip.evil.example": [["93.184.216.34"], ["169.254.169.254"], ["93.184.216.34"], ["10.0.0.1"]],
}

SCHEMES = ("http", "https")


def all_forms() -> list[str]:
    """Every URL, each once."""
    hosts = [*LOOPBACK, *SIX, *INSIDE, *ZONE]
    urls = [f"{SCHEMES[number % 2]}://{host}/" for number, host in enumerate(hosts)]
    urls += [f"http://{host}:8080/latest/meta-data/" for host in (*LOOPBACK[:6], *SIX[:6], *INSIDE[:6])]
    return list(dict.fromkeys([*urls, *WHOLE]))
