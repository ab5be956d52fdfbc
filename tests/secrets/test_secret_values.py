"""Variables that are secrets, by name and by value."""

from __future__ import annotations

import pytest

from holdfast.secrets.environment import is_secret, known_forms, masked_forms, secret_names
from tests.secrets.canaries import canaries, needles

HARMLESS = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PWD": "/home/me",
    "OLDPWD": "/home/me/work",
    "HOME": "/home/me",
    "LANG": "en_GB.UTF-8",
    "LS_COLORS": "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33",
    "SSH_AUTH_SOCK": "/run/user/1000/keyring/ssh",
    "SSH_ASKPASS": "/usr/bin/ssh-askpass",
    "XAUTHORITY": "/home/me/.Xauthority",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "INVOCATION_ID": "0c5cd1d0a5a34c4d8d6c2f7a0b1e9f33",
    "GIT_COMMIT": "7b1c2f0de9a44bd2b8b3f5a4c3e1d0f9a8b7c6d5",
    "REQUEST_ID": "123e4567-e89b-12d3-a456-426614174000",
    "AWS_REGION": "eu-central-1",
    "AWS_PROFILE": "work",
    "AWS_SHARED_CREDENTIALS_FILE": "/home/me/.aws/credentials",
    "COREPACK_ENABLE_AUTO_PIN": "0",
    "AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt",
    "OPENAI_BASE_URL": "http://127.0.0.1:8080/v1",
    "DATABASE_URL": "postgres://localhost/app",
    "MAX_TOKENS": "4096",
    "TOKENIZERS_PARALLELISM": "false",
    "GIT_AUTHOR_NAME": "A. U. Thor",
    "KEYBOARD_LAYOUT": "dvorak-programmer-variant-2",
    "TERM_PROGRAM_VERSION": "3.4.19-nightly.20231107",
    "PYTHONPATH": "/home/me/src/lib/python3.11/site-packages",
    "CONDA_DEFAULT_ENV": "torch21-cuda121-py311-linux-x86_64",
    "GPG_TTY": "/dev/pts/3",
    "SERVICE_CLASS": "MyVeryLongServiceFactoryBeanName2",
    "BUILD": "release-2024.10.11-rc1-linux-amd64-musl",
    "EMPTY_TOKEN": "",
}


@pytest.mark.parametrize("name", canaries())
def test_every_canary_is_a_secret(name: str) -> None:
    assert is_secret(name, canaries()[name])


@pytest.mark.parametrize("name", HARMLESS)
def test_ordinary_variables_are_no_secrets(name: str) -> None:
    assert secret_names({name: HARMLESS[name]}) == set()


@pytest.mark.parametrize("name", ["PIN", "DB_PASS", "SUDO_PASSWORD", "my.secret"])
def test_under_a_strong_name_even_a_number_is_a_secret(name: str) -> None:
    assert is_secret(name, "1234")


def test_the_path_of_a_secret_is_no_secret_unless_the_value_is_no_path() -> None:
    assert not is_secret("VAULT_PASSWORD_FILE", "/run/secrets/vault")
    assert is_secret("VAULT_PASSWORD_FILE", "hunter2hunter2")


def test_a_known_value_is_a_secret_under_any_name() -> None:
    assert secret_names({"NICE": "of our own configuration"}, {"of our own configuration"}) == {"NICE"}


def test_any_name_and_value_can_be_checked() -> None:
    for text in ("", "=", "\udcff\udcfe", "_" * 10_000, "9", "é" * 500, "://", "http://[", "a://b:c@d:e"):
        assert not is_secret(text, text)
        assert masked_forms(text) <= {text}


def test_every_canary_has_a_form_that_is_masked() -> None:
    env = canaries()
    forms = known_forms(env)
    for name, needle in needles(env).items():
        assert any(needle.decode() in form for form in forms), name


def test_common_values_are_not_masked() -> None:
    assert known_forms({"POSTGRES_PASSWORD": "postgres", "A_TOKEN": "true", "DB_PASS": "abc"}) == set()
