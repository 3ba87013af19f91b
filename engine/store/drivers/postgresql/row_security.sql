-- Statements of row_security.py, with its names in braces.

-- name: sequences
DO $$ DECLARE found text; BEGIN
    FOR found IN SELECT pg_get_serial_sequence('{table}', attname) FROM pg_attribute
        WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped
        UNION SELECT s.oid::regclass::text FROM pg_attrdef a
        JOIN pg_depend d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid AND d.refclassid = 'pg_class'::regclass
        JOIN pg_class s ON s.oid = d.refobjid AND s.relkind = 'S' WHERE a.adrelid = to_regclass('{table}')
    LOOP
        IF found IS NOT NULL THEN EXECUTE 'GRANT USAGE ON SEQUENCE ' || found || ' TO {role}'; END IF;
    END LOOP;
END $$

-- name: role
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {role_text}) THEN
        BEGIN
            CREATE ROLE {role} NOLOGIN NOINHERIT;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    IF NOT pg_has_role({user_text}, {role_text}, {act}) THEN
        GRANT {role} TO {user};
    END IF;
END $$

-- name: schema
DO $$ DECLARE holder name := (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = {schema_text}); BEGIN
    IF holder IS NULL THEN
        CREATE SCHEMA {schema} AUTHORIZATION {user};
    ELSIF holder = current_user THEN
        ALTER SCHEMA {schema} OWNER TO {user};
    ELSIF holder <> {user_text} THEN
        RAISE EXCEPTION 'schema % belongs to user %, perhaps of another Lodger: connect with another search_path', {schema_text}, holder;
    END IF;
END $$

-- name: own_table
DO $$ DECLARE holder name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '{table}'::regclass); BEGIN
    IF holder = current_user THEN
        ALTER TABLE {table} OWNER TO {user};
    ELSIF holder <> {user_text} THEN
        RAISE EXCEPTION 'table {table} belongs to user %, perhaps of another Lodger: connect with another search_path', holder;
    END IF;
END $$

-- name: trigger_function
DO $do$ BEGIN EXECUTE replace($f$
CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    owner_type regtype := TG_ARGV[3];
    key_type regtype := TG_ARGV[4];
    maker text := NULLIF(current_setting('lodger.made_by', true), '');
    command text := 'INSERT INTO @CHANGES@ (source, owner, key, kind, at_us, made_by) '
                    'SELECT $1, owner, key, %L, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $2 FROM (%s) c';
    side text;
    owned text := format('%I IS NOT NULL', TG_ARGV[1]);
    olds text;
    news text;
BEGIN
    IF owner_type NOT IN ('text'::regtype, 'uuid'::regtype) OR key_type NOT IN ('text'::regtype, 'uuid'::regtype) THEN
        RAISE EXCEPTION 'columns of type text or uuid are recorded, not % and %', owner_type, key_type;
    END IF;
    -- The tenant and the key as text, from either side of a change.
    side := format('SELECT DISTINCT %I::%s::text AS owner, %I::%s::text AS key', TG_ARGV[1], owner_type, TG_ARGV[2], key_type);
    olds := side || ' FROM old_rows WHERE ' || owned;
    news := side || ' FROM new_rows WHERE ' || owned;
    IF TG_OP = 'INSERT' THEN
        EXECUTE format(command, 'insert', news) USING TG_ARGV[0], maker;
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE format(command, 'delete', olds) USING TG_ARGV[0], maker;
    ELSE
        EXECUTE format(command, 'delete', format('(%s) EXCEPT (%s)', olds, news)) USING TG_ARGV[0], maker;
        EXECUTE format(command, 'insert', format('(%s) EXCEPT (%s)', news, olds)) USING TG_ARGV[0], maker;
        EXECUTE format(command, 'update', format('(%s) INTERSECT (%s)', news, olds)) USING TG_ARGV[0], maker;
    END IF;
    RETURN NULL;
END $body$
$f$, '@CHANGES@', quote_ident(current_schema()) || '.lodger_changes');
REVOKE ALL ON FUNCTION {function}() FROM PUBLIC;
ALTER FUNCTION {function}() OWNER TO {user};
END $do$

-- name: member
SELECT coalesce((SELECT pg_has_role(current_user, oid, {act}) FROM pg_roles WHERE rolname = :role), false)

-- name: ungranted
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :role AND NOT pg_has_role(current_user, oid, {act}))

-- name: here
SELECT current_user, current_schema()

-- name: path
SELECT current_schemas(false)::text[]

-- name: home
SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(:table)

-- name: views
SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND pg_get_userbyid(c.relowner) = current_user

-- name: triggered
SELECT count(*) FROM pg_class c LEFT JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
LEFT JOIN pg_proc p ON p.oid = t.tgfoid WHERE c.oid = to_regclass(:table) AND (NOT p.prosecdef OR c.relkind NOT IN ('r', 'p'))

-- name: privileges
SELECT bool_and(has_table_privilege(:role, to_regclass(name), privilege))
FROM unnest(CAST(:names AS text[]), CAST(:privileges AS text[])) needs (name, privilege)

-- name: filtered
SELECT row_security_active(to_regclass(:table))

-- name: assume
SELECT set_config('lodger.role_before', current_setting('role'), true), set_config('role', {role}, true)

-- name: leave
SELECT set_config('role', current_setting('lodger.role_before'), true)
