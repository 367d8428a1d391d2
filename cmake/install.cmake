# Package config: find_package(coldstream) gives the coldstream:: targets.
