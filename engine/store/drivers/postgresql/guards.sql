-- Statements of guards.py, with its names in braces.

-- name: role
DO $$ DECLARE role name := {role_of_user}; BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOINHERIT', role);
        EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
        IF NOT pg_has_role(current_user, role, {act}) THEN
            BEGIN
                EXECUTE format('GRANT %I TO CURRENT_USER', role);
            EXCEPTION WHEN insufficient_privilege OR invalid_grant_operation THEN NULL;
            END;
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
    END IF;
END $$

-- name: function
DO $do$ BEGIN EXECUTE replace($f$
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, @SCHEMA@, pg_temp
AS $$ BEGIN {body} RETURN NULL; END $$ $f$, '@SCHEMA@', quote_ident(current_schema()));
REVOKE ALL ON FUNCTION {name}() FROM PUBLIC;
END $do$
