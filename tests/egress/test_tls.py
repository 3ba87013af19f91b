"""Certificates are verified, whatever a tenant or a server wishes; the operator may trust one more authority."""

import ssl
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from tests.egress.name_server import NameServer
from tests.egress.peer import Peer, thread_of_peers, way_out

from lodger.engine.core.errors import InputError
from lodger.engine.egress.request_errors import Cut, NoAnswer

NAMES = {"api.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    made = trustme.CA()
    place = tmp_path_factory.mktemp("ca") / "ca.pem"
    made.cert_pem.write_to_path(str(place))
    return made, place


def serving(certificate: trustme.LeafCert, *, old: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if old:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is too old is the point
            made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1_1
    certificate.configure_cert(made)
    return made


@pytest.fixture
def names() -> Iterator[NameServer]:
    return NameServer(NAMES)


def test_a_certificate_of_a_trusted_authority_for_this_very_name(
    authority: tuple[trustme.CA, Path], names: NameServer
) -> None:
    ca, trusted = authority
    peer = Peer(tls=serving(ca.issue_cert("api.example")))
    with thread_of_peers(peer, names=names), way_out(peer, egress_dns=names.place, egress_ca=trusted) as send:
        assert send(peer.url("/", "api.example")).body == b"hello"
        with pytest.raises(Cut):  # another name
            send(peer.url("/", "other.example"))
        with pytest.raises(Cut):  # its address
            send(peer.url("/"))
    assert len(peer.asked) == 1, "no byte of a request crosses before the certificate has been looked at"


def test_an_authority_that_nobody_trusts(authority: tuple[trustme.CA, Path], names: NameServer) -> None:
    ca, _ = authority
    peer = Peer(tls=serving(ca.issue_cert("api.example")))
    with thread_of_peers(peer, names=names), way_out(peer, egress_dns=names.place) as send, pytest.raises(Cut):
        send(peer.url("/", "api.example"))
    assert peer.asked == []


def test_a_downgrade_and_no_tls_at_all(authority: tuple[trustme.CA, Path], names: NameServer) -> None:
    ca, trusted = authority
    old = Peer(tls=serving(ca.issue_cert("api.example"), old=True))
    plain = Peer()
    with (
        thread_of_peers(old, plain, names=names),
        way_out(old, plain, egress_dns=names.place, egress_ca=trusted) as send,
    ):
        for port in (old.port, plain.port):
            with pytest.raises(NoAnswer):
                send(f"https://api.example:{port}/", total_s=3)
    assert old.asked == plain.asked == []


def test_the_environment_cannot_weaken_it(
    authority: tuple[trustme.CA, Path], names: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PYTHONHTTPSVERIFY"):
        monkeypatch.setenv(name, "0")
    test_an_authority_that_nobody_trusts(authority, names)


def test_a_file_without_certificates_is_said_so(tmp_path: Path) -> None:
    place = tmp_path / "none.pem"
    place.write_text("nothing")
    for missing in (place, tmp_path / "absent.pem"):
        with pytest.raises(InputError, match="certificates"), way_out(egress_ca=missing):
            pass
