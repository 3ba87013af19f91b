"""The attack cases, as data: operators test their own hosts with them."""
