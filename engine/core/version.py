"""The version of Lodger, in one place; a test holds it equal to the packaging's."""

VERSION = "0.2.0"
