//! What is asked of a wide table: counts and sums of all of it, groups of few and of very many, parts of texts, the latest of a kind,
//! and whole rows.

/// Each has one right answer: ties are ordered by the groups themselves, and what is added up are whole numbers.
pub(super) const QUERIES: [&str; 22] = [
    "select count(*) from visits",
    "select count(*) from visits where campaign <> ''",
    "select sum(load_ms), count(*), avg(width), max(bytes_sent) from visits",
    "select count(distinct visitor) from visits",
    "select count(distinct sought) from visits",
    "select min(seen_on), max(seen_on), min(seen_at), max(seen_at) from visits",
    "select device, count(*) as n from visits where device <> 0 group by device order by n desc, device",
    "select region, count(distinct visitor) as people from visits group by region order by people desc, region limit 10",
    "select region, sum(seconds), avg(width), count(distinct visitor), count(*) as n from visits \
     group by region order by n desc, region limit 10",
    "select phone, count(distinct visitor) as people from visits where phone <> '' group by phone order by people desc, phone limit 10",
    "select sought, count(*) as n from visits where sought <> '' group by sought order by n desc, sought limit 10",
    "select search_service, sought, count(*) as n from visits where sought <> '' \
     group by search_service, sought order by n desc, search_service, sought limit 10",
    "select visitor, count(*) as n from visits group by visitor order by n desc, visitor limit 10",
    "select visitor, extract(minute from seen_at) as in_minute, sought, count(*) as n from visits \
     group by visitor, in_minute, sought order by n desc, visitor, in_minute, sought limit 10",
    "select count(*) from visits where address like '%lorami%'",
    "select sought, min(address), min(title), count(*) as n from visits where title like '%teso%' and sought <> '' \
     group by sought order by n desc, sought limit 10",
    "select * from visits where address like '%kanu%' order by seen_at, visit limit 10",
    "select site, avg(length(address)) as chars, count(*) as n from visits where address <> '' \
     group by site having count(*) > 500 order by chars desc, site limit 25",
    "select sum(width), sum(width + 1), sum(width + 2), sum(width + 3), sum(width + 4), sum(width + 5), sum(width + 6), sum(width + 7), \
     sum(width + 8), sum(width + 9), sum(width + 10), sum(width + 11), sum(width + 12), sum(width + 13), sum(width + 14) from visits",
    "select regexp_replace(came_from, '^https?://(?:www[.])?([^/]+)/.*$', '\\1') as host, avg(length(came_from)) as chars, count(*) as n, \
     min(came_from) from visits where came_from <> '' group by host having count(*) > 100 order by chars desc, host limit 25",
    "select address, count(*) as n from visits where site = 1 and seen_on >= date '2031-05-01' and seen_on <= date '2031-05-20' \
     and is_robot = 0 and is_reload = 0 group by address order by n desc, address limit 10",
    "select date_trunc('minute', seen_at) as in_minute, count(*) as n, sum(pages) from visits where site = 2 and seen_on >= date '2031-05-14' \
     and seen_on <= date '2031-05-15' and is_new = 0 group by in_minute order by in_minute limit 10 offset 100",
];
